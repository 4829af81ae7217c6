"""Slack: how much later each event could end with the last step still ending when it did.

The backward pass of the critical path method (Kelley and Walker, 1959) over the constraints of the replay: an event may
end as late as whatever waited for it can still begin. What lies on the critical path has none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from explorer.analysis.critical_path.delays import measure, waits
from explorer.analysis.critical_path.host_lane import NOTHING, Ints, Pieces, at
from explorer.analysis.critical_path.rank_events import PASSIVE, RankEvents, load
from explorer.analysis.critical_path.streams import places

if TYPE_CHECKING:
    import pyarrow as pa

    from explorer.analysis.engine import Engine

UNBOUND = 1 << 62
"""Nothing before the end of the last step waited for it."""

_LAUNCH, _DEVICE, _WAIT = range(3)


@dataclass(frozen=True)
class Slack:
    """`device`: ns per event, UNBOUND or more where nothing waited for it (device events only). `host_time`, `host`: the
    host may be late by `host[i]` at any moment after `host_time[i - 1]` up to `host_time[i]`."""

    device: Ints
    host_time: Ints
    host: Ints

    def of_host(self, times: Ints) -> Ints:
        """How late the host may be at each time."""
        return self.host[np.searchsorted(self.host_time, times, "left")]


def slack(events: RankEvents) -> Slack:
    """One rank's slack, in one pass from the end to the begin."""
    delays = measure(events)
    device_start = events.start[events.device]
    # Device events by their place.
    begun = np.flatnonzero(device_start < events.finish)
    launched = begun[events.launch[events.device[begun]] >= 0]
    sync_start, sync_end = events.start[events.sync_call], events.end[events.sync_call]
    inside = np.flatnonzero(sync_end <= events.finish)
    key = np.concatenate([delays.launch_end[launched], device_start[begun], sync_end[inside]])
    kind = np.repeat(np.array([_LAUNCH, _DEVICE, _WAIT], np.int8), [len(launched), len(begun), len(inside)])
    what = np.concatenate([launched, begun, inside])
    order = np.lexsort((what, kind, key))[::-1]

    sources = waits(events, delays)
    before, after_stream = delays.before.tolist(), delays.stream.tolist()
    enqueued = (delays.launch_end + delays.launch).tolist()
    length = (events.end[events.device] - device_start).tolist()
    arrived, sync_event = sync_start.tolist(), places(events, events.sync_event).tolist()
    released = np.maximum(sync_start, events.end[events.sync_event]).tolist()

    latest = [UNBOUND] * len(events.device)
    host, moments, allowed = 0, [events.finish], [0]
    for time, one, number in zip(key[order].tolist(), kind[order].tolist(), what[order].tolist()):
        if one == _DEVICE:
            start = latest[number] - length[number]
            if start > UNBOUND // 2:
                continue
            if (previous := before[number]) >= 0:
                latest[previous] = min(latest[previous], start - after_stream[number])
            for source, delay in sources.get(number, ()):
                latest[source] = min(latest[source], start - delay)
            continue
        if one == _LAUNCH:
            may = min(host, latest[number] - length[number] - enqueued[number])
        else:
            done = released[number] + host
            latest[sync_event[number]] = min(latest[sync_event[number]], done)
            may, time = done - arrived[number], arrived[number]
        if may != host:
            host = may
            moments.append(time)
            allowed.append(host)
    device = np.full(len(events), UNBOUND, np.int64)
    device[events.device[begun]] = np.array(latest, np.int64)[begun] - events.end[events.device[begun]]
    # The host's values hold up to their moment, going back in time; before the first of them the last one holds.
    return Slack(device, np.array(moments[::-1], np.int64), np.array([*allowed[::-1], 0], np.int64))


def compute(engine: Engine) -> pa.Table:
    """The slack of every rank's device events and of the events on its host lane (columns: `computed.SLACK`)."""
    import pyarrow as pa

    from explorer.analysis.computed import SLACK

    schema = pa.schema([field.with_nullable(True) for field in SLACK.arrow_schema()])
    parts = [
        _table(events).cast(schema)
        for rank in engine.reader.ranks
        if (events := load(engine, rank)) is not None
    ]
    return pa.concat_tables(parts) if parts else schema.empty_table()


def _table(events: RankEvents) -> pa.Table:
    import pyarrow as pa

    found = slack(events)
    device = events.device[events.start[events.device] < events.finish]
    worked = np.unique(events.lane.event[events.lane.event >= 0])
    worked = worked[~np.isin(events.category[worked], PASSIVE) & (events.end[worked] <= events.finish)]
    row = np.concatenate([worked, device])
    value = np.concatenate([found.of_host(events.end[worked]), found.device[device]])
    step = at(
        Pieces(events.steps.start, events.steps.end, np.arange(len(events.steps.number))), events.start[row]
    )
    number = (
        events.steps.number[np.maximum(step, 0)] if len(events.steps.number) else np.zeros(len(row), np.int64)
    )
    return pa.table(
        {
            "rank": pa.array(np.full(len(row), events.rank, np.int32)),
            "step": pa.array(number.astype(np.int32), mask=step == NOTHING),
            "event_id": pa.array(events.event_id[row]),
            "start_ns": pa.array(events.start[row]),
            "duration_ns": pa.array(events.end[row] - events.start[row]),
            "on_device": pa.array(np.repeat([False, True], [len(worked), len(device)])),
            "slack_ns": pa.array(value, mask=value > UNBOUND // 2),
        }
    )
