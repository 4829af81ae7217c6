"""Replay: nothing changed gives the recorded times; a change gives what arithmetic says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from explorer.analysis.critical_path.rank_events import RankEvents, load
from explorer.analysis.critical_path.replay import Replay
from explorer.analysis.engine import Engine
from explorer.store.reader import RunReader
from explorer.store.writer import RunWriter
from tests.analysis.critical_path.test_walk import TRACKS, event


def loaded(directory: Path, events: list[dict[str, Any]], steps: list[tuple[int, int]]) -> RankEvents:
    with RunWriter(directory / "run") as writer:
        writer.write("tracks", TRACKS)
        writer.write("events", events)
        writer.write(
            "steps",
            [
                {"step": i, "start_ns": s, "duration_ns": e - s, "complete": True}
                for i, (s, e) in enumerate(steps)
            ],
        )
    rank = load(Engine(RunReader(writer.directory), threads=1), 0)
    assert rank is not None
    return rank


@st.composite
def programs(draw: st.DrawFn) -> tuple[list[dict[str, Any]], int]:
    """A host thread that launches kernels on two streams and sometimes waits for everything enqueued so far."""
    clock = 0
    events: list[dict[str, Any]] = []
    free = {7: 0, 8: 0}
    for number in range(1, draw(st.integers(2, 13))):
        clock += draw(st.integers(0, 20))
        if draw(st.integers(0, 3)) or not any(free.values()):
            end = clock + draw(st.integers(1, 5))
            stream = draw(st.sampled_from([7, 8]))
            begin = max(end + draw(st.integers(0, 4)), free[stream] + draw(st.integers(0, 3)))
            finish = begin + draw(st.integers(1, 40))
            events.append(event(number, 1, "runtime", clock, end))
            events.append(event(1000 + number, stream, "kernel", begin, finish, launch_id=number))
            free[stream] = finish
        else:
            released = max(free.values())
            end = max(clock, released) + draw(st.integers(1, 3))
            events.append(event(number, 1, "sync", clock, end))
        clock = end
    return events, clock + draw(st.integers(1, 9))


@settings(max_examples=60)
@given(programs())
def test_without_a_change_the_recorded_times_come_back(
    tmp_path: Path, program: tuple[list[dict[str, Any]], int]
) -> None:
    events, finish = program
    middle = max(1, finish // 2)
    # A step may not end inside a wait: the program's step marks are statements of their own.
    inside = [
        e
        for e in events
        if e["category"] == "sync" and e["start_ns"] < middle < e["start_ns"] + e["duration_ns"]
    ]
    steps = [(0, finish)] if inside or middle == finish else [(0, middle), (middle, finish)]
    rank = loaded(tmp_path, events, steps)
    replay = Replay(rank)
    prediction = replay.run(replay.unchanged())
    assert prediction.step_ns.tolist() == [e - s for s, e in steps]
    device_end = max((int(rank.end[i]) for i in rank.device if rank.start[i] < finish), default=0)
    assert prediction.wall_ns == max(finish, device_end)


PIPELINE = [
    event(1, 1, "runtime", 0, 2),
    event(2, 1, "runtime", 2, 4),
    event(3, 7, "kernel", 5, 50, launch_id=1),
    event(4, 7, "kernel", 52, 90, launch_id=2),
    event(5, 1, "sync", 10, 91),
]


def test_a_faster_kernel_on_the_path_saves_its_time(tmp_path: Path) -> None:
    replay = Replay(loaded(tmp_path, PIPELINE, [(0, 100)]))
    change = replay.unchanged()
    change.device[replay.events.event_id == 3] = 0.0
    assert replay.run(change).step_ns.tolist() == [100 - 45]


def test_a_removed_wait_lets_the_host_go_on_but_not_the_device(tmp_path: Path) -> None:
    replay = Replay(loaded(tmp_path, PIPELINE, [(0, 100)]))
    change = replay.unchanged()
    change.no_wait[replay.events.event_id == 5] = True
    prediction = replay.run(change)
    assert prediction.step_ns.tolist() == [10 + 1 + 9]
    assert prediction.wall_ns == 90


def test_hidden_work_saves_nothing(tmp_path: Path) -> None:
    events = [
        event(1, 1, "runtime", 0, 2),
        event(2, 1, "runtime", 2, 4),
        event(3, 7, "kernel", 5, 90, launch_id=1),
        event(4, 8, "copy", 6, 30, launch_id=2),
        event(5, 1, "sync", 10, 91),
    ]
    replay = Replay(loaded(tmp_path, events, [(0, 91)]))
    change = replay.unchanged()
    change.device[replay.events.event_id == 4] = 0.0
    assert replay.run(change).step_ns.tolist() == [91]
    change.device[replay.events.event_id == 3] = 0.0
    assert replay.run(change).step_ns.tolist() == [10 + 1]


def test_faster_host_work_lets_the_kernel_begin_earlier(tmp_path: Path) -> None:
    events = [
        event(1, 1, "op", 0, 50),
        event(2, 1, "runtime", 50, 52),
        event(3, 7, "kernel", 55, 75, launch_id=2),
        event(4, 1, "sync", 52, 80),
    ]
    replay = Replay(loaded(tmp_path, events, [(0, 80)]))
    change = replay.unchanged()
    change.lane[replay.lane_event == np.flatnonzero(replay.events.event_id == 1)[0]] = 0.5
    assert replay.run(change).step_ns.tolist() == [55]


def test_a_copy_on_its_own_stream_no_longer_delays_kernels(tmp_path: Path) -> None:
    events = [
        event(1, 1, "runtime", 0, 1),
        event(2, 1, "runtime", 1, 2),
        event(3, 7, "copy", 3, 43, launch_id=1),
        event(4, 7, "kernel", 44, 64, launch_id=2),
        event(5, 1, "sync", 2, 66),
    ]
    replay = Replay(loaded(tmp_path, events, [(0, 66)]))
    change = replay.unchanged()
    change.own_stream[replay.events.event_id == 3] = True
    # The kernel now begins the usual launch latency (2) after its launch call ended at 2.
    assert replay.run(change).step_ns.tolist() == [2 + 2 + 20 + 2]
