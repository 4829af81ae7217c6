"""Ops, kernels, lines, modules, launches, steps, memory and health on runs small enough to work out by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from explorer.analysis.run import Run, open_run
from explorer.analysis.view import all_views
from explorer.model.errors import InputError, UsageError
from explorer.model.ids import module_id
from explorer.model.tables import TABLES
from tests.analysis.hand_built import (
    STREAM,
    event,
    line_id,
    make_run,
    site,
    state,
    step,
    write_rank,
)

MODEL, BLOCK = module_id("", "Model"), module_id("block", "Block")


@pytest.fixture(scope="module")
def training(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """One step: line 10 runs the forward, line 11 the backward, which is charged to line 10; line 12 waits."""
    forward = {
        "site_id": line_id(10),
        "attribution": "traced",
        "module_id": BLOCK,
        "phase": "forward",
        "step": 0,
    }
    backward = {"site_id": line_id(10), "attribution": "forward", "phase": "backward", "step": 0}
    wait = {"site_id": line_id(12), "attribution": "traced", "step": 0}
    return make_run(
        tmp_path_factory.mktemp("training"),
        [
            event(1, "op", "aten::linear", 0, 300, shapes="[[2,3]]", **forward),
            event(2, "op", "aten::addmm", 100, 200, parent_id=1, **forward),
            event(3, "runtime", "cuLaunchKernel", 120, 140, parent_id=2, **forward),
            event(4, "op", "AddmmBackward0", 400, 600, forward_id=2, **backward),
            event(5, "runtime", "hipLaunchKernel", 450, 500, parent_id=4, **backward),
            event(6, "op", "aten::item", 700, 900, **wait),
            event(7, "sync", "cudaStreamSynchronize", 710, 890, parent_id=6, **wait),
            event(20, "kernel", "gemm", 150, 250, STREAM, launch_id=3, op_id=2, **forward),
            event(21, "kernel", "gemm", 480, 780, STREAM, launch_id=5, op_id=4, **backward),
            event(22, "copy", "Memcpy DtoH", 780, 800, 11, launch_id=6, op_id=6, size_bytes=40, **wait),
        ],
        sites=[site(10), site(11), site(12)],
        host_states=[state(10, 0, 350), state(11, 350, 650), state(None, 650, 680), state(12, 680, 1000)],
        modules=[
            {"module_id": MODEL, "path": "", "class_name": "Model"},
            {"module_id": BLOCK, "path": "block", "class_name": "Block", "parent_id": MODEL},
        ],
        steps=[step(0, 0, 1000)],
        cost={"op_ns": 10.0, "line_ns": 5.0},
    )


def by(run: Run, view: str, *keys: str) -> dict[object, dict[str, object]]:
    rows = run.view(view).rows()
    return {row[keys[0]] if len(keys) == 1 else tuple(row[k] for k in keys): row for row in rows}


def pick(row: dict[str, object], *names: str) -> tuple[object, ...]:
    return tuple(row[name] for name in names)


def test_ops(training: Run) -> None:
    rows = by(training, "ops", "name")
    names = ("calls", "total_ns", "self_ns", "corrected_self_ns", "device_ns", "kernels")
    assert {name: pick(row, *names) for name, row in rows.items()} == {
        "aten::linear": (1, 300, 200, 190, 0, 0),
        "aten::addmm": (1, 100, 80, 70, 100, 1),
        "AddmmBackward0": (1, 200, 150, 140, 300, 1),
        "aten::item": (1, 200, 20, 10, 20, 1),
    }
    assert sum(row["share"] for row in rows.values()) == pytest.approx(1)
    assert rows["AddmmBackward0"]["device_share"] == pytest.approx(300 / 420)


def test_kernels(training: Run) -> None:
    rows = by(training, "kernels", "name")
    assert pick(rows["gemm"], "category", "device", "calls", "total_ns", "mean_ns", "min_ns", "max_ns") == (
        "kernel",
        "cuda:0",
        2,
        400,
        200.0,
        100,
        300,
    )
    assert rows["Memcpy DtoH"]["share"] == pytest.approx(20 / 420)


def test_lines_split_their_time_and_charge_backward_to_forward(training: Run) -> None:
    rows = by(training, "lines", "line")
    names = (
        "host_ns",
        "op_ns",
        "other_ns",
        "python_ns",
        "charged_ns",
        "cost_ns",
        "device_ns",
        "calls",
        "ops",
        "kernels",
    )
    assert {line: pick(row, *names) for line, row in rows.items()} == {
        # 50 ns of Python after linear; charged: linear 200 + addmm 80 + launch 20 + backward 150 + launch 50
        10: (350, 300, 0, 50, 500, 550, 400, 1, 3, 2),
        11: (300, 200, 0, 100, 0, 100, 0, 1, 0, 0),
        12: (320, 200, 0, 120, 200, 320, 20, 1, 1, 1),
    }
    for row in rows.values():
        assert row["host_ns"] == row["op_ns"] + row["python_ns"] + row["other_ns"]
    # 30 ns at no user line are part of the whole, so the shares do not reach 1.
    assert sum(row["share"] for row in rows.values()) == pytest.approx(970 / 1000)
    assert pick(rows[10], "corrected_cost_ns") == (550 - 3 * 10 - 5,)


def test_lines_with_shares(tmp_path: Path) -> None:
    run = make_run(
        tmp_path,
        [
            event(1, "kernel", "triton_fused", 0, 100, STREAM, site_id=line_id(1)),
            event(2, "op", "aten::add", 0, 7),
        ],
        event_sites=[
            {"event_id": 1, "site_id": line_id(1), "role": "responsible", "share": 0.75},
            {"event_id": 1, "site_id": line_id(2), "role": "responsible", "share": 0.25},
            {"event_id": 1, "site_id": line_id(3), "role": "executing", "share": 1.0},
        ],
        sites=[site(1), site(2), site(3)],
    )
    assert {line: row["device_ns"] for line, row in by(run, "lines", "line").items()} == {1: 75, 2: 25}
    assert sum(row["share"] for row in run.view("event_lines").rows()) == 1


def test_code_objects_on_one_line_are_one_row_unless_asked(tmp_path: Path) -> None:
    inner = line_id(1, function="<listcomp>")
    run = make_run(
        tmp_path,
        [
            event(1, "op", "aten::mul", 0, 10, site_id=line_id(1)),
            event(2, "op", "aten::add", 20, 60, site_id=inner),
            event(3, "op", "aten::exp", 60, 65, site_id=line_id(0)),
            event(4, "op", "aten::abs", 65, 70, site_id=line_id(0, function="other")),
        ],
        host_states=[state(1, 0, 20), {**state(1, 20, 60), "site_id": inner}, state(1, 60, 80)],
        sites=[
            site(1),
            site(1, function="<listcomp>"),
            site(0, code=""),
            site(0, function="other", code=""),
        ],
    )
    first, *functions = run.lines().rows()
    assert pick(first, "site_id", "line", "function", "code", "ops", "calls", "cost_ns", "host_ns") == (
        inner,
        1,
        "<listcomp>, main",
        "line 1",
        2,
        3,
        70,
        80,
    )
    assert [(row["line"], row["function"]) for row in functions] == [(0, "main"), (0, "other")]
    apart = [pick(row, "line", "function", "host_ns", "ops") for row in run.lines("site").rows()]
    assert apart[:2] == [(1, "<listcomp>", 40, 1), (1, "main", 40, 1)]
    assert sum(row["share"] for row in run.lines()) == pytest.approx(
        sum(row["share"] for row in run.lines("site"))
    )
    with pytest.raises(UsageError, match="cannot be listed by 'file'"):
        run.lines("file")


def test_lines_without_states_use_python_events(tmp_path: Path) -> None:
    run = make_run(
        tmp_path,
        [
            event(1, "python", "train.py(3): step", 0, 100, site_id=line_id(3)),
            event(2, "op", "aten::mm", 20, 60, parent_id=1, site_id=line_id(3)),
            event(3, "runtime", "cudaLaunchKernel", 30, 35, parent_id=2, site_id=line_id(3)),
        ],
        sites=[site(3)],
    )
    (row,) = run.lines().rows()
    assert pick(row, "host_ns", "op_ns", "python_ns", "other_ns", "charged_ns", "cost_ns", "calls") == (
        100,
        35,
        60,
        5,
        40,
        100,
        None,
    )


def test_op_calls_nested_in_python_inside_an_op_stay_op_time(tmp_path: Path) -> None:
    run = make_run(
        tmp_path,
        [event(1, "op", "MyFunction", 0, 100), event(2, "op", "aten::mul", 40, 60, parent_id=1)],
        host_states=[state(1, 0, 30), state(2, 30, 80), state(1, 80, 120)],
        sites=[site(1), site(2)],
    )
    rows = by(run, "lines", "line")
    assert {line: pick(row, "host_ns", "op_ns", "python_ns") for line, row in rows.items()} == {
        1: (70, 50, 20),
        2: (50, 50, 0),
    }


def test_modules_roll_up(training: Run) -> None:
    rows = by(training, "modules_time", "path")
    names = ("class_name", "depth", "ops", "self_ns", "total_ns", "device_self_ns", "device_ns")
    assert {path: pick(row, *names) for path, row in rows.items()} == {
        "": ("Model", 0, 0, 0, 300, 0, 100),
        "block": ("Block", 1, 2, 300, 300, 100, 100),
    }


def test_launches(training: Run) -> None:
    rows = by(training, "launches", "event_id")
    names = ("launch_name", "launch_ns", "delay_ns", "latency_ns", "queue_depth", "is_short")
    assert {key: pick(row, *names) for key, row in rows.items()} == {
        20: ("cuLaunchKernel", 20, 10, 30, 1, False),
        21: ("hipLaunchKernel", 50, 0, 30, 1, False),
        22: ("aten::item", 200, 0, 80, 1, True),
    }


def test_queue_depth_counts_what_waits_and_graph_launches_together(tmp_path: Path) -> None:
    run = make_run(
        tmp_path,
        [
            event(1, "runtime", "cudaGraphLaunch", 0, 10),
            event(2, "kernel", "a", 100, 200, STREAM, launch_id=1),
            event(3, "kernel", "b", 200, 300, STREAM, launch_id=1),
            event(4, "runtime", "cudaLaunchKernel", 50, 60),
            event(5, "kernel", "c", 300, 310, STREAM, launch_id=4),
            event(6, "runtime", "cudaLaunchKernel", 400, 410),
            event(7, "kernel", "d", 420, 430, STREAM, launch_id=6),
        ],
    )
    rows = by(run, "launches", "event_id")
    assert {key: pick(row, "queue_depth", "launched_together") for key, row in rows.items()} == {
        2: (1, 2),
        3: (2, 2),
        5: (3, 1),
        7: (1, 1),
    }
    (depth,) = run.queue().rows()
    assert pick(depth, "launches", "mean_depth", "max_depth", "empty_share") == (4, 1.75, 3, 0.5)


def test_steps_and_what_recording_cost(training: Run) -> None:
    (row,) = training.steps().rows()
    assert pick(row, "step", "wall_ns", "device", "busy_ns", "idle_ns", "ops", "kernels") == (
        0,
        1000,
        "cuda:0",
        420,
        580,
        4,
        3,
    )
    assert pick(row, "recording_ns", "corrected_wall_ns") == (4 * 10 + 4 * 5, 940)
    (summary,) = training.summary().rows()
    assert pick(
        summary, "step_ns", "corrected_step_ns", "steps", "complete_steps", "lines", "linked_share"
    ) == (
        1000,
        940,
        1,
        1,
        2,
        1.0,
    )
    assert summary["compute_share"] == pytest.approx(0.4)
    assert summary["exposed_copy_share"] == pytest.approx(0.02)


def test_incomplete_steps_stay_out_of_the_medians(tmp_path: Path) -> None:
    run = make_run(
        tmp_path,
        [event(1, "op", "a", 0, 1000)],
        steps=[step(0, 0, 500, complete=False), step(1, 500, 600), step(2, 600, 720), step(3, 720, 820)],
    )
    (row,) = run.summary().rows()
    assert pick(row, "steps", "complete_steps", "step_ns") == (4, 3, 100)
    assert "incomplete_steps" in {h["kind"] for h in run.health().rows()}


def test_capture_windows_say_where_nothing_was_recorded(tmp_path: Path) -> None:
    run = make_run(
        tmp_path,
        [event(1, "op", "a", 0, 100), event(2, "op", "b", 5000, 5100)],
        capture={
            "windows": [
                {"window": 0, "start_ns": 0, "duration_ns": 110},
                {"window": 1, "start_ns": 4990, "duration_ns": 120},
            ]
        },
    )
    (row,) = run.breakdown().rows()
    assert pick(row, "wall_ns", "compute_ns", "idle_ns") == (220, 200, 20)
    assert run.steps().rows()[0]["wall_ns"] == 220
    assert sum(gap["duration_ns"] for gap in run.gaps().rows()) == 20


def test_memory(tmp_path: Path) -> None:
    def memory(number: int, at: int, action: str, size: int, **columns: object) -> dict[str, object]:
        return {
            "event_id": number,
            "timestamp_ns": at,
            "action": action,
            "size_bytes": size,
            "device": "cuda:0",
            **columns,
        }

    run = make_run(
        tmp_path,
        memory_events=[
            memory(1, 10, "alloc", 100),
            memory(2, 20, "alloc", 50),
            memory(3, 30, "free", -100),
            memory(4, 40, "alloc", 10),
        ],
    )
    assert [row["allocated_bytes"] for row in run.view("memory_timeline").rows()] == [100, 150, 50, 60]
    (row,) = run.memory().rows()
    assert pick(
        row, "peak_bytes", "peak_ns", "first_bytes", "last_bytes", "allocations", "frees", "churn_bytes"
    ) == (
        150,
        20,
        100,
        60,
        3,
        1,
        160,
    )


def test_health_says_what_the_run_lacks(tmp_path: Path) -> None:
    run = make_run(
        tmp_path,
        [
            event(1, "op", "a", 0, 100),
            event(2, "kernel", "k", 0, 50, STREAM),
            event(3, "kernel", "k", 40, 60, STREAM),
        ],
        health=[{"kind": "no_shapes", "severity": "warning", "count": 1, "message": "Said by the collector"}],
    )
    rows = by(run, "run_health", "kind")
    assert {kind: row["count"] for kind, row in rows.items()} == {
        "no_shapes": 1,
        "unlinked_kernels": 2,
        "device_events_without_line": 2,
        "ops_without_line": 1,
        "overlaps_on_stream": 1,
        "no_steps": 1,
    }
    assert rows["no_shapes"]["message"] == "Said by the collector"


def test_every_view_of_an_empty_run_is_empty_and_typed(tmp_path: Path) -> None:
    write_rank(tmp_path / "run", tracks=[])
    run = open_run(tmp_path / "run")
    for name in run.engine.relations.names():
        if name not in ("rank_info", "rank_clocks", "host_classes"):
            assert len(run.view(name)) == 0, name


def test_every_view_has_the_columns_and_types_it_documents(training: Run) -> None:
    for name, view in all_views().items():
        if training.engine.relations.missing(name):
            continue
        described = {
            r["column_name"]: r["column_type"] for r in training.engine.sql(f"DESCRIBE {name}").rows()
        }
        assert list(described) == [column.name for column in view.columns], name
        aliases = {"int": "INTEGER"}
        documented = [aliases.get(c.type.lower(), c.type.upper()) for c in view.columns]
        assert list(described.values()) == documented, name


def test_every_view_says_what_it_needs() -> None:
    from explorer.analysis.computed import COMPUTED

    for name, view in all_views().items():
        for need in view.needs:
            assert need in TABLES or need in all_views() or need in COMPUTED or "." in need, (name, need)


def test_answers_are_results(training: Run) -> None:
    answer = training.kernels()
    assert answer.df().shape == (2, 11)
    assert answer.arrow().num_rows == len(answer) == 2
    assert answer.to_dict()["schema"] == "neuron-explorer/kernels/1"
    assert '"gemm"' in answer.to_json()


def test_opening_what_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist"):
        open_run(tmp_path / "nothing")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="is not a run"):
        open_run(tmp_path / "empty")


def test_phases_shapes_steps_and_totals(training: Run) -> None:
    phases = {row["phase"]: row for row in training.view("phases").rows()}
    names = ("host_ns", "sync_ns", "device_ns", "communication_ns", "ops", "kernels")
    assert {phase: pick(row, *names) for phase, row in phases.items()} == {
        "forward": (300, 0, 100, 0, 2, 1),
        "backward": (200, 0, 300, 0, 1, 1),
        None: (200, 180, 20, 0, 1, 1),
    }
    (shaped,) = training.view("ops_by_shape").rows()
    assert pick(shaped, "name", "shapes", "calls", "total_ns", "self_ns") == (
        "aten::linear",
        "[[2,3]]",
        1,
        300,
        200,
    )
    by_step = {
        row["name"]: pick(row, "step", "calls", "device_ns") for row in training.view("ops_by_step").rows()
    }
    assert by_step["aten::addmm"] == (0, 1, 100)
    totals = {row["name"]: pick(row, "device_ns", "kernels") for row in training.view("op_totals").rows()}
    assert totals == {
        "aten::linear": (100, 1),
        "aten::addmm": (100, 1),
        "AddmmBackward0": (300, 1),
        "aten::item": (20, 1),
    }


def test_health_of_launches(tmp_path: Path) -> None:
    run = make_run(
        tmp_path,
        [
            event(1, "runtime", "cudaLaunchKernel", 0, 10),
            event(2, "runtime", "cudaLaunchKernel", 20, 30),
            event(3, "runtime", "cudaEventQuery", 40, 50),
            event(4, "kernel", "k", 60, 70, STREAM, launch_id=1),
            event(5, "runtime", "cudaMemcpyAsync", 80, 90),
            event(6, "copy", "Memcpy", 75, 95, STREAM, launch_id=5),
        ],
    )
    rows = by(run, "run_health", "kind")
    assert pick(rows["launches_without_kernel"], "count", "severity") == (1, "warning")
    assert rows["launches_without_kernel"]["message"].startswith("1 of 2 launching calls")
    assert rows["device_work_before_its_launch"]["count"] == 1
