"""Where device time goes: unions, exact sums, steps, CPU-only ranks; against a brute-force count of nanoseconds."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from explorer.analysis.run import open_run
from tests.analysis.hand_built import STREAM, event, make_run, step, write_rank

CLASSES = {"kernel": "compute", "collective": "communication", "copy": "copy", "fill": "copy"}


def by_step(run, device="cuda:0"):
    return {row["step"]: row for row in run.breakdown().rows() if row["device"] == device}


def test_overlaps_count_once_and_sum_to_the_wall_time(tmp_path: Path) -> None:
    run = make_run(
        tmp_path,
        [
            event(1, "op", "aten::mm", 0, 100),
            event(2, "kernel", "gemm", 10, 40, STREAM),
            event(3, "kernel", "gelu", 30, 50, 11),
            event(4, "collective", "nccl", 45, 70, 12),
            event(5, "copy", "Memcpy HtoD", 60, 90, 11),
        ],
        steps=[step(0, 0, 100)],
    )
    (row,) = run.breakdown().rows()
    assert row == {
        "rank": 0,
        "device": "cuda:0",
        "step": 0,
        "complete": True,
        "phase": None,
        "start_ns": 0,
        "wall_ns": 100,
        "compute_ns": 40,
        "exposed_communication_ns": 20,
        "exposed_copy_ns": 20,
        "idle_ns": 20,
        "communication_ns": 25,
        "copy_ns": 30,
        "communication_overlap_ns": 5,
        "copy_overlap_ns": 10,
        "busy_ns": 80,
    }


def test_work_is_clipped_to_its_step_and_the_rest_is_its_own_row(tmp_path: Path) -> None:
    run = make_run(
        tmp_path,
        [
            event(1, "op", "aten::mm", 0, 300),
            event(2, "kernel", "gemm", 90, 110, STREAM),
            event(3, "kernel", "gemm", 140, 160, STREAM),
        ],
        steps=[step(7, 0, 100), step(8, 150, 250)],
    )
    rows = by_step(run)
    assert {s: (r["wall_ns"], r["compute_ns"], r["idle_ns"]) for s, r in rows.items()} == {
        7: (100, 10, 90),
        8: (100, 10, 90),
        None: (100, 20, 80),
    }


def test_touching_steps_and_touching_kernels(tmp_path: Path) -> None:
    run = make_run(
        tmp_path,
        [event(1, "kernel", "a", 0, 50, STREAM), event(2, "kernel", "b", 50, 100, STREAM)],
        steps=[step(1, 0, 50), step(2, 50, 100)],
    )
    assert {s: (r["compute_ns"], r["idle_ns"]) for s, r in by_step(run).items()} == {1: (50, 0), 2: (50, 0)}


def test_a_step_that_begins_early_is_cut_at_the_end_of_the_one_before(tmp_path: Path) -> None:
    run = make_run(
        tmp_path, [event(1, "kernel", "a", 0, 100, STREAM)], steps=[step(1, 0, 60), step(2, 40, 100)]
    )
    assert {s: r["wall_ns"] for s, r in by_step(run).items()} == {1: 60, 2: 40}


def test_each_device_of_a_rank_has_its_rows(tmp_path: Path) -> None:
    run = make_run(
        tmp_path,
        [event(1, "kernel", "a", 0, 30, STREAM), event(2, "kernel", "b", 20, 100, 20)],
        steps=[step(1, 0, 100)],
    )
    assert {r["device"]: (r["compute_ns"], r["idle_ns"]) for r in run.breakdown().rows()} == {
        "cuda:0": (30, 70),
        "cuda:1": (80, 20),
    }


def test_a_rank_without_device_events_is_the_device_cpu(tmp_path: Path) -> None:
    run = make_run(
        tmp_path,
        [
            event(1, "op", "aten::linear", 0, 40),
            event(2, "op", "aten::addmm", 10, 30, parent_id=1),
            event(3, "op", "aten::add", 35, 60, 1),
            event(4, "collective", "gloo:all_reduce", 50, 80, 1),
            event(5, "data", "enumerate(DataLoader)", 80, 100),
        ],
    )
    (row,) = run.breakdown().rows()
    assert (row["device"], row["step"], row["wall_ns"]) == ("cpu", None, 100)
    assert (row["compute_ns"], row["exposed_communication_ns"], row["idle_ns"]) == (60, 20, 20)


def test_pauses_of_the_capture_are_no_idle_time(tmp_path: Path) -> None:
    run = make_run(
        tmp_path,
        [event(1, "kernel", "a", 0, 100, STREAM), event(2, "kernel", "b", 1000, 1100, STREAM)],
        steps=[step(1, 0, 100, window=0), step(2, 1000, 1120, window=1, pause_ns=20)],
    )
    rows = by_step(run)
    assert set(rows) == {1, 2}
    assert (rows[2]["wall_ns"], rows[2]["idle_ns"]) == (120, 20)


def test_ranks_are_apart(tmp_path: Path) -> None:
    write_rank(tmp_path / "run", [event(1, "kernel", "a", 0, 100, STREAM)], rank=0)
    write_rank(tmp_path / "run", [event(1, "op", "b", 0, 50), event(2, "gc", "gen2", 50, 100)], rank=3)
    rows = open_run(tmp_path / "run").breakdown().rows()
    assert [(r["rank"], r["device"], r["compute_ns"], r["idle_ns"]) for r in rows] == [
        (0, "cuda:0", 100, 0),
        (3, "cpu", 50, 50),
    ]


def brute_force(events: list[tuple[str, int, int]], start: int, end: int) -> tuple[int, int, int, int]:
    counts = [0, 0, 0, 0]
    for at in range(start, end):
        running = {CLASSES[c] for c, s, e in events if s <= at < e}
        place = 0 if "compute" in running else 1 if "communication" in running else 2 if running else 3
        counts[place] += 1
    return tuple(counts)  # type: ignore[return-value]


CASE = st.tuples(
    st.lists(
        st.tuples(st.sampled_from(sorted(CLASSES)), st.integers(0, 60), st.integers(0, 20)),
        min_size=1,
        max_size=12,
    ),
    st.lists(st.integers(1, 25), max_size=4),
)
PARTS = ("compute_ns", "exposed_communication_ns", "exposed_copy_ns", "idle_ns")


@settings(max_examples=4)
@given(st.lists(CASE, min_size=10, max_size=10))
def test_equals_a_count_of_every_nanosecond(cases: list[tuple[list, list]]) -> None:
    """Each case is a rank of one run: opening a run costs more than computing on it."""
    with TemporaryDirectory() as folder:
        expected = {}
        for rank, (raw, lengths) in enumerate(cases):
            events = [(category, start, start + duration) for category, start, duration in raw]
            rows = [event(i + 1, c, c, s, e, STREAM + i % 3) for i, (c, s, e) in enumerate(events)]
            steps, at = [], 0
            for number, length in enumerate(lengths):
                steps.append(step(number, at, at + length))
                at += length + number % 2
            write_rank(Path(folder) / "run", rows, rank=rank, **({"steps": steps} if steps else {}))
            first, last = min(s for _, s, _ in events), max(e for _, _, e in events)
            outside = list(brute_force(events, first, last))
            for row in steps:
                start, end = row["start_ns"], row["start_ns"] + row["duration_ns"]
                expected[rank, row["step"]] = brute_force(events, start, end)
                inside = brute_force(events, max(first, start), min(last, end))
                outside = [a - b for a, b in zip(outside, inside)]
            if any(outside):
                expected[rank, None] = tuple(outside)
        run = open_run(Path(folder) / "run")
        found = {(r["rank"], r["step"]): tuple(r[name] for name in PARTS) for r in run.breakdown().rows()}
        assert found == expected
        run.close()
