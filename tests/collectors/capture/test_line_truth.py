"""The recorded line of every op equals what the interpreter says inside the op: 100 %, program by program."""

from __future__ import annotations

import os
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from explorer import neuron_profile  # noqa: E402
from explorer.store.reader import RunReader  # noqa: E402
from tests.collectors.capture import programs  # noqa: E402
from tests.collectors.capture.frame_truth import FrameTruth, Seen  # noqa: E402

pytestmark = [pytest.mark.capture, pytest.mark.filterwarnings("ignore")]
PROGRAMS_FILE = os.path.abspath(programs.__file__)
ROOT = str(Path(__file__).resolve().parents[3]) + os.sep


@pytest.fixture(autouse=True)
def no_back_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """The truth is asked in Python, thousands of calls for a few ops: recording would rightly back off from that."""
    from explorer.collectors.lines import budget

    monkeypatch.setattr(budget, "SHARE", 1000.0)
    monkeypatch.setattr(budget, "OTHERS_SHARE", 1000.0)


def is_user(file: str) -> bool:
    return (
        file == PROGRAMS_FILE
        or (file.startswith("<") and not file.startswith("<frozen"))
        or "ipykernel" in file
    )


def name_in_run(file: str) -> str:
    return file.removeprefix(ROOT)


def capture(function: Any, directory: Path, **options: Any) -> tuple[RunReader, list[Seen]]:
    truth = FrameTruth(is_user)

    def in_thread(work: Any) -> Any:
        def run(*args: Any) -> None:
            with FrameTruth(is_user, truth.seen):
                work(*args)

        return run

    programs.THREAD_WRAPPER = in_thread
    with (
        torch.autograd.set_detect_anomaly(True, check_nan=False),
        neuron_profile(
            directory, library_code=("*/frame_truth.py", "*/test_line_truth.py"), threads="all", **options
        ) as prof,
        truth,
    ):
        function()
    # Ranges that the DataLoader opens for the profiler reach the dispatcher, but are no work.
    return RunReader(str(prof.directory)), [
        seen for seen in truth.seen if not seen.name.startswith("profiler::")
    ]


class Recorded:
    """Events of a run by thread, with their lines."""

    def __init__(self, run: RunReader) -> None:
        self.sites = {row["site_id"]: row for row in run.read("sites").to_pylist()}
        self.innermost = {
            r["stack_id"]: r["site_id"] for r in run.read("stacks").to_pylist() if r["depth"] == 0
        }
        threads = {row["track_id"]: row["thread_id"] for row in run.read("tracks").to_pylist()}
        self.by_id: dict[int, dict[str, Any]] = {}
        self.by_thread: dict[int, list[dict[str, Any]]] = defaultdict(list)
        for event in run.read("events").to_pylist():
            self.by_id[event["event_id"]] = event
            if event["category"] == "op":
                self.by_thread[threads[event["track_id"]]].append(event)

    def around(self, seen: Seen) -> list[dict[str, Any]]:
        """Ops that enclose a moment, innermost first; from the one of that name on, where the profiler saw it (an op
        that C++ calls without going through the dispatcher's front door has no event of its own)."""
        enclosing = [
            event
            for event in self.by_thread[seen.native_id]
            if event["start_ns"] <= seen.time_ns < event["start_ns"] + event["duration_ns"]
        ]
        enclosing.sort(key=lambda event: event["duration_ns"])
        for at, event in enumerate(enclosing):
            if event["name"] == seen.name:
                return enclosing[at:]
        assert enclosing, seen
        return enclosing

    def executing(self, event: dict[str, Any]) -> tuple[str, int, str] | None:
        site = self.sites.get(self.innermost.get(event["stack_id"]))
        return (site["file"], site["line"], site["function"]) if site else None

    def responsible(self, event: dict[str, Any]) -> tuple[str, int] | None:
        site = self.sites.get(event["site_id"])
        return (site["file"], site["line"]) if site else None


@pytest.mark.parametrize("name", programs.PROGRAMS)
def test_every_op_has_its_line(name: str, tmp_path: Path) -> None:
    run, truth = capture(programs.PROGRAMS[name], tmp_path / "run")
    recorded = Recorded(run)
    assert truth
    wrong = []
    for seen in truth:
        assert seen.line is not None
        expected = (name_in_run(seen.line[0]), *seen.line[1:])
        chain = recorded.around(seen)
        event = chain[0]
        if recorded.executing(event) != expected:
            wrong.append((seen.name, "executing", recorded.executing(event), expected))
        if not seen.in_backward:
            if recorded.responsible(event) != expected[:2]:
                wrong.append((seen.name, "responsible", recorded.responsible(event), expected))
            assert (event["attribution"], event["precision"]) == ("traced", "exact")
    assert not wrong


BACKWARD = [
    "modules_forward_and_backward",
    "custom_function",
    "without_gradients",
    "checkpoint_without_reentry",
    "double_backward",
    "two_losses_and_accumulation",
    "optimizers",
    "tensor_hooks",
    "module_hooks",
]


@pytest.mark.parametrize("name", BACKWARD)
def test_every_backward_op_has_the_line_of_its_forward_op(name: str, tmp_path: Path) -> None:
    run, truth = capture(programs.PROGRAMS[name], tmp_path / "run")
    recorded = Recorded(run)
    checked, wrong = 0, []
    for seen in truth:
        if not seen.in_backward or seen.forward_line is None:
            continue
        event = recorded.around(seen)[0]
        if event["attribution"] == "traced":
            # The program's own code inside the backward pass (a hook, a custom backward, a recomputation).
            assert seen.line is not None
            expected = (name_in_run(seen.line[0]), seen.line[1])
        else:
            expected = (name_in_run(seen.forward_line[0]), seen.forward_line[1])
            checked += 1
        if recorded.responsible(event) != expected:
            wrong.append((seen.name, recorded.responsible(event), expected))
    assert checked
    assert not wrong
