"""Replay of one rank with changed durations: what the steps would take if something were faster or gone.

The order of work is kept. Host time on the driving lane runs as recorded, scaled piece by piece; a device event begins
when the event before it on its stream, the events it waits for and its launch allow it (`delays`); a waiting call
returns when its device event has ended. Without a change the replay gives the recorded times exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from explorer.analysis.critical_path.delays import measure, waits
from explorer.analysis.critical_path.host_lane import NOTHING, Ints, at, distinct
from explorer.analysis.critical_path.rank_events import RankEvents
from explorer.analysis.critical_path.streams import places

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


@dataclass
class Change:
    """What is different. Factors scale durations: 0.5 is twice as fast, 0 is gone.

    `lane`: one factor per lane piece; `device`: one per event (device events count); `no_wait`: events that are
    waiting calls and no longer wait; `own_stream`: device events that no longer hold up their stream.
    """

    lane: Floats
    device: Floats
    no_wait: Flags
    own_stream: Flags


@dataclass(frozen=True)
class Prediction:
    """Replayed times in ns: the whole span, and each step (in the order of `events.steps`)."""

    wall_ns: int
    step_ns: Ints


class Replay:
    """A rank made ready for replays.

    The lane is cut so finely that each piece lies in one event, one recorded line and one step: `lane_start`,
    `lane_end` (ns), `lane_event` (index or -1), `lane_state` (site id or 0).
    """

    def __init__(self, events: RankEvents) -> None:
        self.events = events
        lane, states, steps = events.lane, events.states, events.steps
        self._sync_start, self._sync_end = events.start[events.sync_call], events.end[events.sync_call]
        cuts = (
            # The lane has no holes: each piece begins where the one before ends.
            lane.start,
            lane.end[-1:],
            states.start,
            states.end,
            steps.start,
            steps.end,
            self._sync_start,
            self._sync_end,
        )
        edges = distinct(*cuts)
        edges = edges[(edges >= events.begin) & (edges <= events.finish)]
        self.lane_start, self.lane_end = edges[:-1], edges[1:]
        self.lane_event = np.maximum(at(lane, self.lane_start), -1)
        state = at(states, self.lane_start)
        self.lane_state = np.where(state == NOTHING, 0, state)
        self._delays = measure(events)
        self._order = self._causes_first()
        self._waits = waits(events, self._delays)

    def unchanged(self) -> Change:
        """The change that changes nothing."""
        count = len(self.events)
        return Change(
            np.ones(len(self.lane_start)),
            np.ones(count),
            np.zeros(count, np.bool_),
            np.zeros(count, np.bool_),
        )

    def _causes_first(self) -> list[int]:
        """Device events (by start) and waits (by end) in one order: places of device events, and -1 - the number of a wait."""
        events = self.events
        begun = np.flatnonzero(events.start[events.device] < events.finish)
        key = np.concatenate([events.start[events.device[begun]], self._sync_end])
        # They come sorted, and a device event stands before the wait that ends as it starts: a stable sort merges them.
        order = np.argsort(key, kind="stable")
        what = np.concatenate([begun, -1 - np.arange(len(self._sync_end))])
        return cast("list[int]", what[order].tolist())

    def run(self, change: Change) -> Prediction:
        """Replay with a change."""
        events = self.events
        clock = np.append(0.0, np.cumsum((self.lane_end - self.lane_start) * change.lane))

        def lane_time(times: Ints) -> Floats:
            slot = np.clip(np.searchsorted(self.lane_start, times, "right") - 1, 0, len(self.lane_start) - 1)
            return np.asarray(clock[slot] + (times - self.lane_start[slot]) * change.lane[slot], np.float64)

        # Without device work and without a wait the host's time is that of its lane.
        shift, device_end = np.zeros(1), 0.0
        if self._order:
            shift, device_end = self._propagate(
                change,
                lane_time(self._sync_start),
                lane_time(self._sync_end),
                lane_time(self._delays.launch_end),
            )

        def host_time(times: Ints) -> Floats:
            number = self._waits_before(times)
            return np.asarray(lane_time(times) + shift[number], np.float64)

        finish = float(host_time(np.array([events.finish]))[0])
        step_ns = host_time(events.steps.end) - host_time(events.steps.start)
        return Prediction(round(max(finish, device_end)), np.rint(step_ns).astype(np.int64))

    def _waits_before(self, times: Ints) -> Ints:
        """Number of the last wait that had returned, plus one; 0 is 'none yet'."""
        return np.searchsorted(self._sync_end, times, "right").astype(np.int64)

    @cached_property
    def _unchanging(self) -> tuple[list[Any], ...]:
        """What `_propagate` reads that no change touches, as lists; of device events by their place."""
        events, delays = self.events, self._delays
        device = events.device
        released = events.end[events.sync_event]
        arrays = (
            self._sync_end - np.maximum(released, self._sync_start),
            self._waits_before(self._sync_start),
            self._waits_before(delays.launch_end),
            places(events, events.sync_event),
            events.start[device] - events.begin,
            events.launch[device] >= 0,
            delays.before,
            delays.stream,
            events.track[device],
        )
        return tuple(array.tolist() for array in arrays)

    def _propagate(
        self, change: Change, sync_start: Floats, sync_end: Floats, launch: Floats
    ) -> tuple[Floats, float]:
        """Run through causes and effects.

        Returns how far host time is moved from lane time after each wait (entry 0: before any), and the last device end.
        """
        events = self.events
        (
            own,
            waits_before_sync,
            waits_before_launch,
            sync_event,
            recorded,
            linked,
            before,
            after_stream,
            track,
        ) = self._unchanging
        no_wait = change.no_wait[events.sync_call].tolist()
        arrives, returns = sync_start.tolist(), sync_end.tolist()
        enqueued = (launch + self._delays.launch).tolist()
        device = events.device
        length = ((events.end[device] - events.start[device]) * change.device[device]).tolist()
        aside = change.own_stream[device].tolist()
        shift = [0.0] * (len(own) + 1)
        ends: list[float | None] = [None] * len(device)
        stream_end: dict[int, float] = {}
        last = 0.0
        for what in self._order:
            if what < 0:
                what = -1 - what
                arrived = arrives[what] + shift[waits_before_sync[what]]
                released = None if no_wait[what] else ends[sync_event[what]]
                done = arrived if released is None else max(arrived, released)
                shift[what + 1] = done + own[what] - returns[what]
                continue
            causes = [
                done + delay
                for source, delay in self._waits.get(what, ())
                if (done := ends[source]) is not None
            ]
            if before[what] >= 0 and track[what] in stream_end:
                causes.append(stream_end[track[what]] + after_stream[what])
            if linked[what]:
                causes.append(enqueued[what] + shift[waits_before_launch[what]])
            end = (max(causes) if causes else recorded[what]) + length[what]
            ends[what] = end
            if not aside[what]:
                stream_end[track[what]] = end
            last = max(last, end)
        return np.array(shift), last
