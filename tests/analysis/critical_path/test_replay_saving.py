"""Savings of drafts by replay."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from explorer.analysis.affected_time import affected_time
from explorer.analysis.engine import Engine
from explorer.analysis.replay_saving import ReplaySaving
from explorer.analysis.rule import Draft
from explorer.analysis.step_scope import find_scope
from explorer.analysis.what_if import Replays
from explorer.model.finding import Saving
from explorer.store.reader import RunReader
from explorer.store.writer import RunWriter
from tests.analysis.critical_path.test_replay import PIPELINE
from tests.analysis.critical_path.test_walk import TRACKS, event


def saving(
    directory: Path, affected: str, remaining: float = 0.0, events: list | None = None
) -> Saving | None:
    with RunWriter(directory / "run") as writer:
        writer.write("tracks", TRACKS)
        writer.write("events", events or PIPELINE)
        writer.write("steps", [{"step": 0, "start_ns": 0, "duration_ns": 100, "complete": True}])
    engine = Engine(RunReader(writer.directory), threads=1)
    draft = Draft(
        title="t",
        line_times_ns={},
        saving=Saving(1, 2, 3),
        evidence=(),
        advice="a",
        affected=affected,
        remaining_share=remaining,
    )
    return ReplaySaving(Replays(engine))(draft, find_scope(engine), affected_time(engine, affected))


def test_events_on_the_path_and_off_it(tmp_path: Path) -> None:
    assert saving(
        tmp_path, "SELECT event_id, start_ns, duration_ns FROM events WHERE event_id = 3"
    ) == Saving(1, 45, 45, "replay")
    half = saving(tmp_path, "SELECT event_id, start_ns, duration_ns FROM events WHERE event_id = 4", 0.5)
    assert half == Saving(1, 19, 38, "replay")


def test_a_wait_saves_only_what_the_device_leaves(tmp_path: Path) -> None:
    result = saving(tmp_path, "SELECT event_id, start_ns, duration_ns FROM events WHERE event_id = 5")
    assert result == Saving(1, 10, 10, "replay")  # the device still needs until 90


def test_host_time_by_intervals(tmp_path: Path) -> None:
    events = [event(1, 1, "op", 10, 90)]
    assert saving(
        tmp_path, "SELECT 20 AS start_ns, 30 AS duration_ns UNION ALL SELECT 40, 20", events=events
    ) == Saving(1, 40, 40, "replay")
    assert saving(tmp_path, "SELECT 200 AS start_ns, 30 AS duration_ns", events=events) == Saving(
        0, 0, 0, "replay"
    )


@settings(max_examples=30)
@given(st.lists(st.tuples(st.integers(0, 120), st.integers(1, 40)), min_size=1, max_size=6))
def test_intervals_count_once_and_only_inside_the_step(
    tmp_path: Path, intervals: list[tuple[int, int]]
) -> None:
    text = " UNION ALL ".join(f"SELECT {s} AS start_ns, {d} AS duration_ns" for s, d in intervals)
    covered = {t for s, d in intervals for t in range(s, s + d) if t < 100}
    result = saving(tmp_path, text, events=[event(1, 1, "op", 10, 90)])
    assert result is not None
    assert result.expected == len(covered)
