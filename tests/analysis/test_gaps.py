"""Idle time and its causes: what the host did, which line, launches, waits; sums that are exact."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from explorer.analysis.run import open_run
from tests.analysis.hand_built import STREAM, event, line_id, make_run, site, state, step, write_rank

CLASSES = ("op", "python", "data", "sync", "runtime", "communication", "compile", "gc", "io")


def gap_list(run) -> list[tuple]:
    return [(r["start_ns"], r["end_ns"], r["cause"], r["cause_ns"], r["line"]) for r in run.gaps().rows()]


def launched(number: int, call_ns: int, start_ns: int, end_ns: int, **columns) -> list[dict]:
    """A launching call of 10 ns and its kernel."""
    return [
        event(number, "runtime", "cudaLaunchKernel", call_ns, call_ns + 10),
        event(number + 1, "kernel", "gemm", start_ns, end_ns, STREAM, launch_id=number, **columns),
    ]


def test_the_host_was_late_in_python_and_the_line_is_named(tmp_path: Path) -> None:
    run = make_run(
        tmp_path,
        [*launched(1, 0, 20, 100), *launched(3, 800, 820, 900, site_id=line_id(9))],
        host_states=[state(5, 0, 150), state(6, 150, 700), state(9, 700, 900)],
        sites=[site(5), site(6), site(9)],
    )
    assert gap_list(run) == [
        (0, 20, "start", 20, None),
        (100, 820, "python", 700, 6),
    ]


@pytest.mark.parametrize(
    ("category", "cause"),
    [("data", "data"), ("sync", "sync"), ("compile", "compile"), ("gc", "gc"), ("io", "io"), ("op", "op")],
)
def test_what_the_host_did_is_the_cause(tmp_path: Path, category: str, cause: str) -> None:
    run = make_run(
        tmp_path,
        [*launched(1, 0, 20, 100), event(9, category, "x", 110, 780), *launched(3, 800, 820, 900)],
    )
    assert gap_list(run)[1] == (100, 820, cause, 670, None)


def test_a_late_start_on_the_device_is_launch_latency(tmp_path: Path) -> None:
    run = make_run(
        tmp_path, [*launched(1, 0, 20, 100), *launched(3, 120, 400, 500, site_id=line_id(9))], sites=[site(9)]
    )
    assert gap_list(run)[1] == (100, 400, "launch_latency", 280, 9)


def test_work_that_was_enqueued_in_time_waits_or_follows(tmp_path: Path) -> None:
    run = make_run(
        tmp_path,
        [
            *launched(1, 0, 20, 100),
            *launched(3, 30, 105, 200),
            *launched(5, 40, 220, 300),
            *launched(7, 50, 20_300, 20_400),
        ],
        edges=[{"source_id": 4, "target_rank": 0, "target_id": 6, "kind": "stream_wait"}],
    )
    assert [row[2] for row in gap_list(run)] == ["start", "back_to_back", "waiting", "waiting"]


def test_the_edges_of_the_recording(tmp_path: Path) -> None:
    run = make_run(
        tmp_path, [event(1, "op", "aten::mm", 0, 500), event(2, "kernel", "gemm", 100, 300, STREAM)]
    )
    rows = run.gaps().rows()
    assert [(r["cause"], r["duration_ns"], r["previous_id"], r["next_id"]) for r in rows] == [
        ("start", 100, None, 2),
        ("end", 200, 2, None),
    ]


def test_overlapping_streams_leave_no_gap(tmp_path: Path) -> None:
    run = make_run(
        tmp_path,
        [
            event(1, "kernel", "a", 0, 100, STREAM),
            event(2, "kernel", "b", 10, 20, 11),
            event(3, "kernel", "c", 100, 120, 11),
            event(4, "kernel", "d", 130, 140, 11),
        ],
    )
    (row,) = run.gaps().rows()
    assert (row["start_ns"], row["end_ns"], row["previous_id"], row["next_id"]) == (120, 130, 3, 4)


def test_on_a_cpu_rank_gaps_are_the_time_outside_ops(tmp_path: Path) -> None:
    run = make_run(
        tmp_path,
        [
            event(1, "op", "a", 0, 100),
            event(2, "op", "b", 150, 200),
            event(3, "op", "c", 160, 170, parent_id=2),
        ],
        host_states=[state(4, 0, 110), state(5, 110, 200)],
        sites=[site(4), site(5)],
        steps=[step(3, 0, 200)],
    )
    (row,) = run.gaps().rows()
    assert (row["device"], row["cause"], row["cause_ns"], row["line"], row["step"]) == (
        "cpu",
        "python",
        50,
        5,
        3,
    )


def test_causes_roll_up_per_line(tmp_path: Path) -> None:
    run = make_run(
        tmp_path,
        [event(i, "op", "a", 100 * i, 100 * i + 40) for i in range(5)],
        host_states=[state(5, 0, 440)],
        sites=[site(5)],
    )
    (row,) = run.view("gap_causes").rows()
    assert (row["cause"], row["line"], row["gaps"], row["total_ns"], row["longest_ns"], row["share"]) == (
        "python",
        5,
        4,
        240,
        60,
        1.0,
    )


def test_host_breakdown_gives_calls_inside_ops_their_own_time(tmp_path: Path) -> None:
    run = make_run(
        tmp_path,
        [
            event(1, "annotation", "train_step", 0, 100),
            event(2, "op", "aten::linear", 10, 60, parent_id=1),
            event(3, "op", "aten::addmm", 20, 50, parent_id=2),
            event(4, "runtime", "cudaLaunchKernel", 30, 40, parent_id=3),
            event(5, "op", "aten::item", 60, 90, parent_id=1),
            event(6, "sync", "cudaStreamSynchronize", 65, 85, parent_id=5),
            event(7, "gc", "generation 2", 45, 48, 1),
            event(8, "data", "enumerate(DataLoader)", 100, 140),
            event(9, "op", "aten::stack", 110, 130, parent_id=8),
            event(10, "op", "late", 150, 160),
        ],
    )
    (row,) = run.view("host_breakdown").rows()
    assert {name: row[f"{name}_ns"] for name in (*CLASSES, "idle", "wall")} == {
        "op": 37 + 10 + 10,
        "python": 20,
        "data": 40,
        "sync": 20,
        "runtime": 10,
        "communication": 0,
        "compile": 0,
        "gc": 3,
        "io": 0,
        "idle": 10,
        "wall": 160,
    }


CATEGORIES = ("op", "data", "sync", "runtime", "collective", "compile", "gc", "io", "annotation")


CASE = st.tuples(
    st.lists(
        st.tuples(st.sampled_from(CATEGORIES), st.integers(0, 80), st.integers(0, 30)),
        min_size=1,
        max_size=10,
    ),
    st.lists(st.tuples(st.integers(0, 80), st.integers(0, 30)), max_size=6),
    st.lists(st.integers(1, 40), max_size=3),
)


@settings(max_examples=4)
@given(st.lists(CASE, min_size=10, max_size=10))
def test_every_sum_is_exact(cases: list[tuple[list, list, list]]) -> None:
    """Each case is a rank of one run: opening a run costs more than computing on it."""
    with TemporaryDirectory() as folder:
        written = []
        for rank, (host, work, lengths) in enumerate(cases):
            rows = [event(i, category, "x", s, s + d, i % 2) for i, (category, s, d) in enumerate(host)]
            rows += [event(100 + i, "kernel", "k", s, s + d, STREAM + i % 2) for i, (s, d) in enumerate(work)]
            steps, at = [], 0
            for number, length in enumerate(lengths):
                steps.append(step(number, at, at + length))
                at += length + 2
            write_rank(Path(folder) / "run", rows, rank=rank, **({"steps": steps} if steps else {}))
            written.append((rows, steps))
        run = open_run(Path(folder) / "run")
        device = {(r["rank"], r["device"], r["step"]): r for r in run.breakdown().rows()}
        for row in run.view("host_breakdown").rows():
            assert sum(row[f"{name}_ns"] for name in (*CLASSES, "idle")) == row["wall_ns"]
            assert all(row[f"{name}_ns"] >= 0 for name in (*CLASSES, "idle"))
            same = {
                r["wall_ns"] for (rank, _, s), r in device.items() if (rank, s) == (row["rank"], row["step"])
            }
            assert same <= {row["wall_ns"]}
        for row in run.view("idle_breakdown").rows():
            assert row["idle_ns"] == device[row["rank"], row["device"], row["step"]]["idle_ns"]
            assert sum(row[f"{name}_ns"] for name in (*CLASSES, "unknown")) == row["idle_ns"]
            assert row["unknown_ns"] >= 0
        gaps = run.gaps().rows()
        for rank, (rows, steps) in enumerate(written):
            first, last = (
                min(r["start_ns"] for r in rows),
                max(r["start_ns"] + r["duration_ns"] for r in rows),
            )
            ends = [(s["start_ns"], s["start_ns"] + s["duration_ns"]) for s in steps]
            beyond = sum(e - s - max(0, min(last, e) - max(first, s)) for s, e in ends)
            idle = sum(r["idle_ns"] for (at_rank, _, _), r in device.items() if at_rank == rank)
            assert sum(g["duration_ns"] for g in gaps if g["rank"] == rank) == idle - beyond
        run.close()
