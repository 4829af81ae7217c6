"""Dynamo's accounts of a compilation, laid around the profiler's own range of it.

The account gives microseconds cut off at both ends, so it would only overlap the range it belongs to, and the compiler's
time would be counted twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from explorer.collectors.capture.host_event import HostEvent
from explorer.collectors.capture.kineto_window import RawWindow

_RANGES = frozenset(["entire_frame_compile", "entire_backward_compile"])

SLACK_NS = 1_000_000
"""The account and the range begin and end this close to each other."""


def around_ranges(events: Sequence[HostEvent], raw: RawWindow) -> list[HostEvent]:
    """The events, compilations among them on the thread of their range and enclosing it."""
    rows = [row for row, name in enumerate(raw.names) if name in _RANGES]
    if not rows:
        return list(events)
    starts = raw.starts[rows]
    ends = starts + raw.durations[rows]
    result = []
    for event in events:
        if event.category == "compile" and event.duration_ns:
            end = event.start_ns + event.duration_ns
            near = (np.abs(starts - event.start_ns) < SLACK_NS) & (np.abs(ends - end) < SLACK_NS)
            if near.any():
                at = int(np.argmax(near))
                first = min(event.start_ns, int(starts[at]))
                event = replace(
                    event,
                    native_id=int(raw.resource_ids[rows[at]]),
                    start_ns=first,
                    duration_ns=max(end, int(ends[at])) - first,
                )
        result.append(event)
    return result
