"""Another tracer (debugger, coverage) holds sys.settrace on Python 3.11: it goes on undisturbed, and there are lines still."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from explorer import neuron_profile  # noqa: E402
from explorer.store.reader import RunReader  # noqa: E402
from tests.collectors.capture import programs  # noqa: E402
from tests.collectors.capture.test_line_truth import Recorded, capture, name_in_run  # noqa: E402

pytestmark = [
    pytest.mark.capture,
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.skipif(hasattr(sys, "monitoring"), reason="sys.monitoring has room for several tools"),
]


@pytest.fixture
def tracer() -> Iterator[Counter]:
    """A tracer that counts the lines of this file, as coverage would."""
    lines: Counter = Counter()

    def trace(frame: Any, event: str, argument: Any) -> Any:
        if frame.f_code.co_filename != __file__:
            return None
        if event == "line":
            lines[frame.f_lineno] += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    yield lines
    assert sys.gettrace() is trace
    sys.settrace(before)


def step(x: Any, weight: Any) -> Any:
    y = x @ weight  # operator
    y = torch.relu(y)  # call
    z = y.sum() * 2  # method
    z.backward()  # backward
    return z


def line_of(mark: str) -> int:
    lines = Path(__file__).read_text().splitlines()
    return next(at for at, text in enumerate(lines, 1) if text.endswith("# " + mark))


def test_the_tracer_sees_every_line_and_ops_have_theirs(tracer: Counter, tmp_path: Path) -> None:
    weight = torch.ones(4, 4, requires_grad=True)
    with neuron_profile(tmp_path / "run", telemetry=False) as prof:
        for _ in range(3):
            step(torch.ones(4, 4), weight)
            prof.step()
    assert tracer[line_of("call")] == tracer[line_of("backward")] == 3
    run = RunReader(tmp_path / "run")
    sites = {row["site_id"]: row for row in run.read("sites").to_pylist()}
    stacks: dict[int, list[str]] = {}
    for row in run.read("stacks").to_pylist():
        stacks.setdefault(row["stack_id"], []).append(sites[row["site_id"]]["function"])
    found = {}
    for event in run.read("events").to_pylist():
        if event["site_id"] is not None:
            site = sites[event["site_id"]]
            facts = (site["line"], site["function"], event["attribution"], event["precision"])
            found.setdefault((event["name"], event["step"]), (*facts, stacks[event["stack_id"]][1:2]))
    test = test_the_tracer_sees_every_line_and_ops_have_theirs.__name__
    for number in range(3):
        assert found["aten::relu", number] == (line_of("call"), "step", "stack", "exact", [test])
        assert found["aten::sum", number] == (line_of("method"), "step", "stack", "exact", [test])
        assert found["ReluBackward0", number] == (line_of("call"), "step", "forward", "exact", [test])
        # No call was made since the function began: only the function is known.
        assert found["aten::mm", number][1:4] == ("step", "stack", "coarse")
        assert found["aten::mul", number] == (line_of("method"), "step", "stack", "inferred", [test])
    names = {event["category"] for event in run.read("events").to_pylist()}
    assert "python" not in names
    health = {row["kind"] for row in run.read("health").to_pylist()}
    assert "lines_from_stacks" in health
    assert "no_lines" not in health
    assert run.manifests[0].capture["lines"] == "torch.profiler with_stack"


# The profiler does not say inside which comprehension another one stands.
NAMES = [
    "generators",
    "lambdas_and_partials",
    "callbacks_from_library_code",
    "recursion",
    "decorators",
    "custom_function",
    "optimizers",
    "tensor_hooks",
]


@pytest.mark.parametrize("name", NAMES)
def test_what_is_called_exact_is(name: str, tracer: Counter, tmp_path: Path) -> None:
    run, truth = capture(programs.PROGRAMS[name], tmp_path / "run")
    recorded = Recorded(run)
    exact, wrong = 0, []
    for seen in truth:
        assert seen.line is not None
        expected = (name_in_run(seen.line[0]), *seen.line[1:])
        event = recorded.around(seen)[0]
        found = recorded.executing(event)
        assert found is not None
        is_exact = event["precision"] == "exact" and not seen.in_backward
        exact += is_exact
        # An operator's line may be another one of its function.
        if found[::2] != expected[::2] or (is_exact and found != expected):
            wrong.append((seen.name, found, expected))
    assert not wrong
    assert exact


def test_with_a_profile_function_as_well_there_are_no_lines_and_it_is_said(
    tracer: Counter, tmp_path: Path
) -> None:
    def profile(frame: Any, event: str, argument: Any) -> None:
        pass

    sys.setprofile(profile)
    try:
        with neuron_profile(tmp_path / "run", telemetry=False):
            torch.ones(3) + 1
        assert sys.getprofile() is profile
    finally:
        sys.setprofile(None)
    assert "no_lines" in {row["kind"] for row in RunReader(tmp_path / "run").read("health").to_pylist()}


def before() -> None:
    torch.ones(3) + 1


def meanwhile() -> None:
    torch.ones(3) * 2


def afterwards() -> None:
    torch.ones(3) - 3


@pytest.mark.parametrize("windows", [1, 2])
def test_a_debugger_that_starts_while_recording_comes_first(tmp_path: Path, windows: int) -> None:
    seen = []

    def debugger(frame: Any, event: str, argument: Any) -> Any:
        seen.append(frame.f_code.co_name)

    schedule = torch.profiler.schedule(wait=0, warmup=0, active=1) if windows == 2 else None
    settrace, tracer = sys.settrace, sys.gettrace()
    with neuron_profile(tmp_path / "run", telemetry=False, schedule=schedule) as prof:
        before()
        sys.settrace(debugger)
        meanwhile()
        prof.step()
        assert sys.gettrace() is debugger
        meanwhile()
        sys.settrace(None)
        afterwards()
        prof.step()
        afterwards()
    assert (sys.settrace, sys.gettrace()) == (settrace, tracer)
    # The first call that the debugger sees is the program's.
    assert seen[0] == "meanwhile"
    assert not {"before", "afterwards"} & set(seen)
    run = RunReader(tmp_path / "run")
    sites = {row["site_id"]: row["function"] for row in run.read("sites").to_pylist()}
    found = [
        (e["name"], sites.get(e["site_id"])) for e in run.read("events").to_pylist() if e["category"] == "op"
    ]
    assert {function for name, function in found if name == "aten::add"} == {"before"}
    assert {function for name, function in found if name == "aten::mul"} == {None}
    assert {function for name, function in found if name == "aten::sub"} == {"afterwards"}
    assert "tracer_took_over" in {row["kind"] for row in run.read("health").to_pylist()}
