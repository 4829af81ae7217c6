"""The critical path of one rank: walk back from the end, always to the constraint that was satisfied last.

Each moment between the first and the last step belongs to exactly one piece of the path, so its pieces add up to the
wall time. The rule for a device event: of the end of the event before it on its stream, the ends of the events it
waited for, and the call that enqueued it, the latest is what it waited for; the rest is launch latency or device gap.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from explorer.analysis.critical_path.host_lane import Ints
from explorer.analysis.critical_path.rank_events import RankEvents
from explorer.analysis.critical_path.streams import stream_predecessors

HOST, DEVICE, LAUNCH_LATENCY, DEVICE_GAP = 0, 1, 2, 3
KINDS = ("host", "device", "launch_latency", "device_gap")


@dataclass(frozen=True)
class Path:
    """Pieces in time order, touching, from begin to finish. `event` is the device event of a piece, -1 on the host."""

    start: Ints
    end: Ints
    kind: Ints
    event: Ints


def _previous(events: RankEvents) -> Ints:
    """By index of an event: the device event before it on its stream; -1 for the first and for host events."""
    before = stream_predecessors(events)
    previous = np.full(len(events), -1, np.int64)
    previous[events.device] = np.where(before >= 0, events.device[before], -1)
    return previous


def walk(events: RankEvents) -> Path:
    """The critical path from `events.begin` to `events.finish`, ending on the driving thread."""
    # Of millions of events the path may hold few: they are looked at where they lie.
    start, end, launch = events.start.item, events.end.item, events.launch.item
    previous = _previous(events).item
    waits: dict[int, list[int]] = {}
    for source, target in zip(events.wait_source.tolist(), events.wait_target.tolist()):
        waits.setdefault(target, []).append(source)
    sync_end = events.end[events.sync_call]
    sync_event = events.sync_event.tolist()
    pieces: list[tuple[int, int, int, int]] = []

    def emit(left: int, right: int, kind: int, event: int) -> None:
        left = max(left, events.begin)
        if right > left:
            pieces.append((left, right, kind, event))

    moment, current, unused = events.finish, -1, len(sync_event)
    while moment > events.begin:
        if current < 0:
            # Each wait is passed once, so that empty device events cannot lead in a circle.
            number = unused = min(int(np.searchsorted(sync_end, moment, "right")), unused) - 1
            if number < 0:
                emit(events.begin, moment, HOST, -1)
                break
            released = end(sync_event[number])
            emit(released, moment, HOST, -1)
            moment, current = min(moment, released), sync_event[number]
            continue
        begun = min(start(current), moment)
        emit(begun, moment, DEVICE, current)
        moment = begun
        call = launch(current)
        latest, source, kind = events.begin, -1, DEVICE_GAP
        for one in (previous(current), *waits.get(current, ())):
            if one >= 0 and one != current and min(end(one), begun) >= latest and start(one) < begun:
                latest, source = min(end(one), begun), one
        if call >= 0 and min(end(call), begun) >= latest:
            latest, source, kind = min(end(call), begun), -1, LAUNCH_LATENCY
        emit(latest, begun, kind, current)
        moment, current = latest, source
        if source < 0 and kind == DEVICE_GAP:
            # No known constraint: the work came from before the capture.
            break
    columns = np.array(pieces[::-1], np.int64).reshape(-1, 4)
    return Path(columns[:, 0], columns[:, 1], columns[:, 2], columns[:, 3])
