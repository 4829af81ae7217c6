"""Slack: an event may be late by its slack and no more, as the replay sees it; the critical path has none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import given, settings

from explorer.analysis.critical_path.path_table import pieces
from explorer.analysis.critical_path.rank_events import RankEvents
from explorer.analysis.critical_path.replay import Replay
from explorer.analysis.critical_path.slack import UNBOUND, slack
from explorer.analysis.critical_path.walk import walk
from explorer.analysis.engine import Engine
from explorer.store.reader import RunReader
from tests.analysis.critical_path.test_replay import loaded, programs
from tests.analysis.critical_path.test_walk import event


def steps_end(replay: Replay, number: int, longer_ns: int) -> int:
    """The replayed time of all steps with one device event longer."""
    change = replay.unchanged()
    length = int(replay.events.end[number] - replay.events.start[number])
    change.device[number] = (length + longer_ns) / length
    return int(replay.run(change).step_ns.sum())


def by_id(rank: RankEvents, values: np.ndarray) -> dict[int, int]:
    return dict(zip(rank.event_id.tolist(), values.tolist()))


@settings(max_examples=60)
@given(programs())
def test_the_steps_hold_up_to_the_slack_and_not_beyond(
    tmp_path: Path, program: tuple[list[dict[str, Any]], int]
) -> None:
    events, finish = program
    rank = loaded(tmp_path, events, [(0, finish)])
    replay, found = Replay(rank), slack(rank)
    recorded = finish
    for number in rank.device[rank.start[rank.device] < finish].tolist():
        spare = int(found.device[number])
        if spare > UNBOUND // 2:
            assert steps_end(replay, number, 10_000) == recorded
            continue
        assert spare >= 0
        assert steps_end(replay, number, spare) == recorded
        assert steps_end(replay, number, spare + 5) == recorded + 5


@settings(max_examples=60)
@given(programs())
def test_the_critical_path_has_no_slack(tmp_path: Path, program: tuple[list[dict[str, Any]], int]) -> None:
    events, finish = program
    rank = loaded(tmp_path, events, [(0, finish)])
    found = slack(rank)
    start, duration, _, on_path, _ = pieces(rank, walk(rank))
    device = set(rank.device.tolist())
    for begun, lasted, number in zip(start.tolist(), duration.tolist(), on_path.tolist()):
        if number in device:
            assert found.device[number] == 0
        elif number >= 0:
            assert found.of_host(np.array([begun + lasted])).tolist() == [0]


def test_two_streams(tmp_path: Path) -> None:
    # The host waits for the long kernel on stream 7; the short one on stream 8 could end 30 ns later. The last kernel is
    # awaited by nobody. The host launches the short kernel at 8 and could have done so 30 ns later.
    events = [
        event(1, 1, "runtime", 0, 4),
        event(2, 1, "runtime", 4, 8),
        event(3, 1, "sync", 10, 62),
        event(4, 1, "runtime", 70, 72),
        event(11, 7, "kernel", 5, 60, launch_id=1),
        event(12, 8, "kernel", 10, 20, launch_id=2),
        event(13, 8, "kernel", 50, 55, launch_id=2),
        event(14, 7, "kernel", 75, 79, launch_id=4),
    ]
    rank = loaded(tmp_path, events, [(0, 80)])
    device = by_id(rank, slack(rank).device)
    assert device[11] == 0
    assert min(device[12], device[13], device[14]) > UNBOUND // 2
    assert slack(rank).of_host(np.array([4, 8, 10, 62, 72])).tolist() == [0, 50, 50, 0, 0]


def test_the_view(tmp_path: Path) -> None:
    events = [
        event(1, 1, "runtime", 0, 4),
        event(3, 1, "sync", 10, 62),
        event(11, 7, "kernel", 5, 60, launch_id=1),
    ]
    loaded(tmp_path, events, [(0, 80)])
    engine = Engine(RunReader(tmp_path / "run"), threads=1)
    rows = engine.sql(
        "SELECT on_device, calls, critical_calls, least_slack_ns, total_ns FROM slack_names"
    ).rows()
    assert [tuple(row.values()) for row in rows] == [
        (True, 1, 1, 0, 55),
        (False, 1, 1, 0, 52),
        (False, 1, 1, 0, 4),
    ]
