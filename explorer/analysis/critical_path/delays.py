"""The fixed delays of a replay: how long after each of its causes a device event may begin."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from explorer.analysis.critical_path.host_lane import Ints
from explorer.analysis.critical_path.rank_events import RankEvents
from explorer.analysis.critical_path.streams import places, stream_predecessors


@dataclass(frozen=True)
class Delays:
    """Per device event, in the order of `events.device`: the one before it on its stream (-1: none), and the delays after that
    and after its launch, in ns.

    A delay is the recorded one where that cause was what the event waited for. Where the cause was hidden behind
    another, it is the usual one (the median of those seen), never more than recorded. Recorded overlap is a negative
    delay. `launch_end` is when the launch lets the event begin; `wait` holds one delay per stream or event wait.
    """

    before: Ints
    launch_end: Ints
    stream: Ints
    launch: Ints
    wait: Ints


def measure(events: RankEvents) -> Delays:
    """Delays as recorded."""
    device, start, end = events.device, events.start[events.device], events.end[events.device]
    before = stream_predecessors(events)
    has_stream, has_launch = before >= 0, events.launch[device] >= 0
    launch_end = np.minimum(events.end[np.maximum(events.launch[device], 0)], start)
    after_stream = start - end[np.maximum(before, 0)] if len(device) else start
    after_launch = start - launch_end
    after_wait = events.start[events.wait_target] - events.end[events.wait_source]
    unknown = np.iinfo(np.int64).max
    latest_wait = np.full(len(device), unknown)
    target = places(events, events.wait_target)
    real = target >= 0
    np.minimum.at(latest_wait, target[real], np.maximum(after_wait[real], 0))
    stream_delay = np.where(has_stream, np.maximum(after_stream, 0), unknown)
    launch_delay = np.where(has_launch, after_launch, unknown)
    binding = np.minimum(np.minimum(stream_delay, launch_delay), latest_wait)
    by_launch = has_launch & (launch_delay == binding)
    by_stream = has_stream & ~by_launch & (stream_delay == binding)
    usual_launch = _median(after_launch[by_launch])
    usual_stream = _median(after_stream[by_stream & (after_stream >= 0)])
    keep_wait = after_wait < 0
    keep_wait[real] |= np.maximum(after_wait[real], 0) == binding[target[real]]
    return Delays(
        before=before,
        launch_end=launch_end,
        stream=np.where(by_stream | (after_stream < 0), after_stream, np.minimum(after_stream, usual_stream)),
        launch=np.where(by_launch, after_launch, np.minimum(after_launch, usual_launch)),
        wait=np.where(keep_wait, after_wait, 0),
    )


def waits(events: RankEvents, delays: Delays) -> dict[int, list[tuple[int, int]]]:
    """By place of a waiting device event: the places of those it waits for, each with the delay after it in ns."""
    awaited, waiting = places(events, events.wait_source), places(events, events.wait_target)
    on_device = (awaited >= 0) & (waiting >= 0)
    found: dict[int, list[tuple[int, int]]] = {}
    for source, target, delay in zip(
        awaited[on_device].tolist(), waiting[on_device].tolist(), delays.wait[on_device].tolist()
    ):
        found.setdefault(target, []).append((source, delay))
    return found


def _median(values: Ints) -> int:
    return int(np.median(values)) if len(values) else 0
