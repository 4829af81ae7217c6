"""Hot pure-Python loops: recording backs off, says so, and is exact again afterwards."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from explorer import neuron_profile  # noqa: E402
from explorer.collectors.lines.settrace_recorder import LINE_BUDGET  # noqa: E402
from explorer.store.reader import RunReader  # noqa: E402

pytestmark = pytest.mark.capture


def spin(times: int) -> int:
    total = 0
    for number in range(times):
        total += number
    torch.ones(3) * 2
    return total


def plain() -> None:
    torch.ones(3) + 1


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunReader:
    with neuron_profile(tmp_path_factory.mktemp("hot") / "run") as prof:
        for _ in range(2):
            spin(5)
            plain()
            prof.step()
        spin(300_000)
        plain()
        prof.step()
        spin(5)
        plain()
        prof.step()
    return RunReader(str(prof.directory))


def lines(run: RunReader, name: str) -> list[tuple]:
    """(step, function, is the line known exactly, first line, last line where only the function is known)."""
    sites = {row["site_id"]: row for row in run.read("sites").to_pylist()}
    found = []
    for event in run.read("events").to_pylist():
        if event["name"] == name:
            site = sites[event["site_id"]]
            found.append(
                (event["step"], site["function"], event["precision"], site["line"], site["end_line"])
            )
    return found


def test_ops_of_the_hot_function_have_its_line_or_the_function(run: RunReader) -> None:
    code = spin.__code__
    last = max(line for _, _, line in code.co_lines() if line)
    found = {step: rest for step, *rest in lines(run, "aten::mul")}
    exact = ["spin", "exact", code.co_firstlineno + 4, None]
    assert found[0] == found[3] == exact
    # Recording may have been taken up between the end of the loop and the op.
    assert found[2] in (exact, ["spin", "coarse", code.co_firstlineno, last])


def test_what_follows_hot_code_is_exact_at_once(run: RunReader) -> None:
    found = {step: rest for step, *rest in lines(run, "aten::add")}
    assert found[2] == ["plain", "exact", plain.__code__.co_firstlineno + 1, None]


def test_recording_is_exact_again_after_a_step(run: RunReader) -> None:
    found = {step: rest for step, *rest in lines(run, "aten::add")}
    exact = ["plain", "exact", plain.__code__.co_firstlineno + 1, None]
    assert found[0] == found[1] == found[3] == exact


def test_the_loop_does_not_fill_the_run(run: RunReader) -> None:
    assert run.dataset("host_states").count_rows() < 1.2 * LINE_BUDGET


def test_it_is_said(run: RunReader) -> None:
    health = {row["kind"]: row["message"] for row in run.read("health").to_pylist()}
    assert "spin" in health["coarse_lines"]


class Numbers(torch.utils.data.Dataset):
    """Each item costs more lines than hot code gets again at a step's end."""

    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.tensor([float(text) for text in ["1.5"] * 30_000])


def test_after_a_hot_dataset_lines_are_exact_at_once(tmp_path: Path) -> None:
    with neuron_profile(tmp_path / "run") as prof:
        for batch in torch.utils.data.DataLoader(Numbers(), batch_size=1):
            torch.sigmoid(batch)
            prof.step()
    run = RunReader(str(prof.directory))
    here = test_after_a_hot_dataset_lines_are_exact_at_once.__code__
    first = here.co_firstlineno
    assert [row[1:4] for row in lines(run, "aten::sigmoid")] == [(here.co_name, "exact", first + 3)] * 8


def test_new_threads_are_no_other_tracer(tmp_path: Path) -> None:
    with neuron_profile(tmp_path / "run") as prof:
        for _ in range(5):
            # Each is likely to get the identity of the one before.
            thread = threading.Thread(target=plain)
            thread.start()
            thread.join()
        plain()
    run = RunReader(str(prof.directory))
    assert "tracer_took_over" not in {row["kind"] for row in run.read("health").to_pylist()}
    assert {row[2] for row in lines(run, "aten::add")} == {"exact"}
