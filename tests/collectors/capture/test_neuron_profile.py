"""A small training loop, recorded end to end, compared with what the program did."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")


from explorer import neuron_profile  # noqa: E402
from explorer.store.reader import RunReader  # noqa: E402

HERE = "tests/collectors/capture/test_neuron_profile.py"
pytestmark = pytest.mark.capture


def line_of(text: str) -> int:
    """Line number of the only line of this file that ends with the marker comment."""
    lines = Path(__file__).read_text().splitlines()
    found = [at for at, line in enumerate(lines, 1) if line.endswith("# " + text)]
    assert len(found) == 1, text
    return found[0]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunReader:
    weight = torch.ones(4, 4, requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=0.1, foreach=False)
    data = torch.ones(2, 4)
    directory = tmp_path_factory.mktemp("runs") / "run"
    with neuron_profile(directory) as prof:
        for _ in range(5):
            hidden = data @ weight  # forward matmul
            loss = hidden.sum()  # forward sum
            loss.backward()  # backward call
            optimizer.step()  # optimizer call
            optimizer.zero_grad()
            prof.step()
    return RunReader(prof.directory)


def rows(run: RunReader, table: str) -> list[dict]:
    return run.read(table).to_pylist()


def test_every_op_has_the_line_that_ran_it(run: RunReader) -> None:
    sites = {row["site_id"]: row for row in rows(run, "sites")}
    seen = {
        (event["name"], event["phase"], sites[event["site_id"]]["line"])
        for event in rows(run, "events")
        if event["name"] in ("aten::matmul", "aten::sum", "MmBackward0", "SumBackward0", "aten::add_")
    }
    assert seen == {
        ("aten::matmul", "forward", line_of("forward matmul")),
        ("aten::sum", "forward", line_of("forward sum")),
        ("MmBackward0", "backward", line_of("forward matmul")),
        ("SumBackward0", "backward", line_of("forward sum")),
        ("aten::add_", "optimizer", line_of("optimizer call")),
    }
    # A worker of pytest-xdist is itself a program given as text.
    assert {row["file"] for row in sites.values() if row["is_user"]} - {"<string>"} == {HERE}


def test_backward_ops_keep_the_line_that_was_executing(run: RunReader) -> None:
    sites = {row["site_id"]: row for row in rows(run, "sites")}
    innermost = {row["stack_id"]: row["site_id"] for row in rows(run, "stacks") if row["depth"] == 0}
    nodes = [event for event in rows(run, "events") if event["name"] == "MmBackward0"]
    assert len(nodes) == 5
    for node in nodes:
        assert sites[innermost[node["stack_id"]]]["line"] == line_of("backward call")
        assert (node["attribution"], node["precision"]) == ("forward", "exact")


def test_backward_ops_are_tied_to_their_own_forward_op(run: RunReader) -> None:
    events = {event["event_id"]: event for event in rows(run, "events")}
    pairs = [(e, events[e["forward_id"]]) for e in events.values() if e["name"] == "MmBackward0"]
    assert {forward["name"] for _, forward in pairs} == {"aten::mm"}
    assert all(forward["step"] == backward["step"] for backward, forward in pairs)


def test_steps_follow_each_other_and_windows_hold_whole_steps(run: RunReader) -> None:
    steps = rows(run, "steps")
    assert [step["step"] for step in steps if step["complete"]] == [0, 1, 2, 3, 4]
    assert [step["window"] for step in steps if step["complete"]] == [0, 0, 1, 1, 1]
    for before, after in itertools.pairwise(steps):
        assert before["start_ns"] + before["duration_ns"] <= after["start_ns"]


def test_nested_ops_add_up(run: RunReader) -> None:
    events = rows(run, "events")
    children: dict[int, int] = {}
    for event in events:
        if event["parent_id"] is not None:
            children[event["parent_id"]] = children.get(event["parent_id"], 0) + event["duration_ns"]
    for event in events:
        assert event["self_ns"] == event["duration_ns"] - children.get(event["event_id"], 0) >= 0


def test_states_cover_every_window_without_overlap(run: RunReader) -> None:
    windows = run.manifests[0].capture["windows"]
    states = rows(run, "host_states")
    for window in windows:
        start, end = window["start_ns"], window["start_ns"] + window["duration_ns"]
        inside = [s for s in states if start <= s["start_ns"] < end]
        assert sum(s["duration_ns"] for s in inside) == window["duration_ns"]
        for before, after in itertools.pairwise(inside):
            assert before["start_ns"] + before["duration_ns"] == after["start_ns"]
            assert before["stack_id"] != after["stack_id"]


def test_shapes_are_sampled_in_the_first_window(run: RunReader) -> None:
    steps_with_shapes = {e["step"] for e in rows(run, "events") if e["name"] == "aten::mm" and e["shapes"]}
    assert steps_with_shapes == {0, 1}
    first = next(e for e in rows(run, "events") if e["name"] == "aten::mm")
    assert first["shapes"] == "[[2,4],[4,4]]"


def test_cost_sources_and_coverage_are_stored(run: RunReader) -> None:
    manifest = run.manifests[0]
    assert manifest.finished
    assert manifest.cost["op_ns"] > 0
    assert manifest.cost["line_ns"] > 0
    assert {row["file"] for row in rows(run, "sources")} >= {HERE}
    coverage = manifest.capture["coverage"]
    assert sum(phase["none"] for phase in coverage.values()) == 0
    assert set(coverage) == {"forward", "backward", "optimizer"}


def test_telemetry_becomes_counters_and_can_be_left_out(tmp_path: Path) -> None:
    for wanted in (True, False):
        with neuron_profile(tmp_path / f"run-{wanted}", telemetry=wanted) as prof:
            torch.ones(3).sum()
        assert prof.directory is not None
        reader = RunReader(prof.directory)
        names = set(reader.read("counters").column("name").to_pylist())
        assert ("process.memory" in names) == wanted
        labels = {row["label"] for row in reader.read("tracks").to_pylist() if row["kind"] == "counter"}
        assert ("host" in labels) == wanted
        assert reader.manifests[0].capture["telemetry"][:1] == (["host"] if wanted else [])


def test_without_lines_windows_end_at_the_limit_as_well(tmp_path: Path) -> None:
    weight = torch.ones(4, requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=0.1, foreach=False)
    with neuron_profile(tmp_path / "run", max_events=120, lines=False, telemetry=False):
        for _ in range(40):
            (weight * 2).sum().backward()
            optimizer.step()
    run = RunReader(str(tmp_path / "run"))
    assert 120 <= run.dataset("events").count_rows() < 400
    health = {row["kind"] for row in run.read("health").to_pylist()}
    assert {"not_captured", "no_lines"} <= health
    ranges = [e for e in run.read("events").to_pylist() if e["name"] == "Optimizer.step#SGD.step"]
    steps = [row["step"] for row in run.read("steps").to_pylist() if row["complete"]]
    assert {e["step"] for e in ranges} >= set(steps)


def test_clipping_scheduling_and_averaging_belong_to_the_optimizer_phase(tmp_path: Path) -> None:
    model = torch.nn.Linear(4, 4)
    average = [p.detach().clone() for p in model.parameters()]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    with neuron_profile(tmp_path / "run", telemetry=False) as prof:
        for _ in range(3):
            model(torch.ones(2, 4)).sum().backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            scheduler.step()
            with torch.no_grad():
                for kept, now in zip(average, model.parameters()):
                    kept.lerp_(now, 0.1)
            optimizer.zero_grad()
            prof.step()
        with torch.no_grad():
            model(torch.ones(2, 4))
    phases: dict[str, set[str]] = {}
    for event in RunReader(str(tmp_path / "run")).read("events").to_pylist():
        if event["category"] == "op" and event["step"] in (1, 2, 3):
            phases.setdefault(event["name"], set()).add(event["phase"])
    assert phases["aten::_foreach_norm"] == phases["aten::lerp_"] == {"optimizer"}
    assert phases["aten::addmm"] == {"forward", "evaluation"}
    assert phases["AddmmBackward0"] == {"backward"}
