"""Which steps findings speak about."""

from __future__ import annotations

from pathlib import Path

from explorer.analysis.engine import Engine
from explorer.analysis.run import open_run
from explorer.analysis.step_scope import StepScope, find_scope
from explorer.store.reader import RunReader
from explorer.store.writer import RunWriter


def scope_of(directory: Path, steps: list[tuple[int, int, int, bool]], events: int = 1) -> StepScope:
    """Steps as (rank, step, duration, complete), each rank's one after the other."""
    for rank in sorted({row[0] for row in steps} or {0}):
        with RunWriter(directory / "run", rank=rank) as writer:
            start, rows = 1_000, []
            for _, step, duration, complete in (row for row in steps if row[0] == rank):
                rows.append({"step": step, "start_ns": start, "duration_ns": duration, "complete": complete})
                start += duration
            if rows:
                writer.write("steps", rows)
            event = {
                "event_id": 1,
                "track_id": 1,
                "category": "op",
                "name": "a",
                "start_ns": 500,
                "duration_ns": 40,
                "self_ns": 40,
            }
            writer.write("events", [event][:events])
    return find_scope(Engine(RunReader(directory / "run")))


def test_the_slowest_rank_by_its_median(tmp_path: Path) -> None:
    scope = scope_of(tmp_path, [(0, 1, 100, True), (0, 2, 100, True), (1, 1, 120, True), (1, 2, 130, True)])
    assert (scope.rank, scope.median_ns, scope.numbers) == (1, 125, (1, 2))


def test_incomplete_and_outlier_steps_are_left_out(tmp_path: Path) -> None:
    rows = [(0, 0, 100, True), (0, 1, 100, True), (0, 2, 900, True), (0, 3, 110, True), (0, 4, 10, False)]
    scope = scope_of(tmp_path, rows)
    assert (scope.numbers, scope.all_numbers, scope.total_ns) == ((0, 1, 3), (0, 1, 2, 3), 310)
    assert scope.where("e") == "e.rank = 0 AND e.step BETWEEN 0 AND 3 AND e.step NOT IN (2)"
    assert scope.spans == ((1_000, 1_100), (1_100, 1_200), (2_100, 2_210))


def test_a_long_first_step_is_warm_up(tmp_path: Path) -> None:
    scope = scope_of(tmp_path, [(0, 0, 180, True), (0, 1, 100, True), (0, 2, 100, True)])
    assert scope.numbers == (1, 2)


def test_only_incomplete_steps_serve_where_there_are_no_others(tmp_path: Path) -> None:
    scope = scope_of(tmp_path, [(0, 7, 100, False)])
    assert (scope.numbers, scope.complete) == ((7,), False)


def test_a_run_without_steps_is_one_step(tmp_path: Path) -> None:
    scope = scope_of(tmp_path, [])
    assert (scope.numbers, scope.count, scope.median_ns, scope.where("e")) == ((), 1, 40, "e.rank = 0")


def test_a_run_without_events_is_empty(tmp_path: Path) -> None:
    assert scope_of(tmp_path, [], events=0).total_ns == 0


def test_a_marker_after_the_work_makes_a_recording_no_longer(tmp_path: Path) -> None:
    rows = [
        {"event_id": i, "track_id": 1, "category": category, "name": "a", "start_ns": start, "duration_ns": duration, "self_ns": duration}
        for i, (category, start, duration) in enumerate([("op", 500, 40), ("other", 3_540, 0)])
    ]  # fmt: skip
    with RunWriter(tmp_path / "run") as writer:
        writer.write("events", rows)
    scope = find_scope(Engine(RunReader(tmp_path / "run")))
    assert (scope.start_ns, scope.end_ns, scope.total_ns) == (500, 540, 40)


def test_without_steps_findings_and_the_summary_mean_the_same_time(tmp_path: Path) -> None:
    rows = [
        {"event_id": i, "track_id": 1, "category": category, "name": "a", "start_ns": start, "duration_ns": 40, "self_ns": 40}
        for i, (category, start) in enumerate([("other", 100), ("op", 500), ("op", 700), ("overhead", 900), ("other", 990)])
    ]  # fmt: skip
    with RunWriter(tmp_path / "run") as writer:
        writer.write("events", rows)
    with open_run(writer.directory) as run:
        assert run.bottlenecks().recorded_step_ns == run.summary().rows()[0]["step_ns"] == 240


def test_where_all_is_of_unknown_kind_that_is_all_there_is(tmp_path: Path) -> None:
    row = {
        "event_id": 1,
        "track_id": 1,
        "category": "other",
        "name": "a",
        "start_ns": 5,
        "duration_ns": 9,
        "self_ns": 9,
    }
    with RunWriter(tmp_path / "run") as writer:
        writer.write("events", [row])
    assert find_scope(Engine(RunReader(tmp_path / "run"))).total_ns == 9
