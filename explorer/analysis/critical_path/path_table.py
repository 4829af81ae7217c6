"""The critical path as rows: cut at steps, at lane pieces and at recorded lines, each row with what ran and its line."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from explorer.analysis.critical_path.host_lane import NOTHING, Ints, Pieces, at, distinct
from explorer.analysis.critical_path.rank_events import BY_STATE, PASSIVE, RankEvents, own_code
from explorer.analysis.critical_path.walk import HOST, KINDS, Path

if TYPE_CHECKING:
    import pyarrow as pa


def path_table(events: RankEvents, path: Path) -> pa.Table:
    """One row per piece of the path.

    Columns: rank, step (null between steps), start_ns, duration_ns, kind (a host or device category, `python`, `idle`,
    `launch_latency`, `device_gap`), event_id (null without event), site_id (null: no line known).
    The durations add up to `events.finish - events.begin`.
    """
    import pyarrow as pa

    start, duration, kind, event, site = pieces(events, path)
    step = at(Pieces(events.steps.start, events.steps.end, np.arange(len(events.steps.number))), start)
    in_step = step != NOTHING
    number = (
        events.steps.number[np.maximum(step, 0)]
        if len(events.steps.number)
        else np.zeros(len(start), np.int64)
    )
    return pa.table(
        {
            "rank": pa.array(np.full(len(start), events.rank, np.int32)),
            "step": pa.array(number.astype(np.int32), mask=~in_step),
            "start_ns": pa.array(start),
            "duration_ns": pa.array(duration),
            "kind": pa.array(kind, pa.string()),
            "event_id": pa.array(events.event_id[np.maximum(event, 0)], mask=event < 0),
            "site_id": pa.array(site, mask=site <= 0),
        }
    )


def pieces(events: RankEvents, path: Path) -> tuple[Ints, Ints, np.ndarray, Ints, Ints]:
    """Start, duration, kind, event index (-1: none) and site (0: none) of the path's finest pieces."""
    host = path.kind == HOST
    edges = distinct(
        path.start,
        path.end,
        _within(events.lane.start, path),
        _within(events.states.start, path),
        _within(events.states.end, path),
        _within(events.steps.start, path),
        _within(events.steps.end, path),
    )
    start = edges[:-1]
    duration = np.diff(edges)
    segment = np.searchsorted(path.start, start, "right") - 1
    on_host = host[segment]
    lane_event = np.maximum(at(events.lane, start), -1)
    state = np.maximum(at(events.states, start), 0)
    event = np.where(on_host, lane_event, path.event[segment])
    passive = np.isin(events.category, PASSIVE)
    working = on_host & (lane_event >= 0) & ~passive[np.maximum(lane_event, 0)]
    kind = np.array(KINDS, object)[path.kind[segment]]
    device_work = path.kind[segment] == KINDS.index("device")
    named = working | device_work
    kind[named] = events.category[event[named]]
    called = working & own_code(events, start, lane_event)
    kind[called] = "python"
    quiet = (on_host & ~working) | called
    known = (state > 0) | (lane_event >= 0)
    kind[quiet & known] = "python"
    kind[quiet & ~known] = "idle"
    own = np.where(event >= 0, events.site[np.maximum(event, 0)], 0)
    by_state = on_host & (state > 0) & np.isin(events.category[np.maximum(event, 0)], BY_STATE) & (event >= 0)
    site = np.where(quiet | by_state | (on_host & (own == 0)), state, own)
    return _joined(start, duration, kind, event, site, np.concatenate([events.steps.start, events.steps.end]))


def _within(times: Ints, path: Path) -> Ints:
    if not len(path.start):
        return times[:0]
    return times[(times > path.start[0]) & (times < path.end[-1])]


def _joined(
    start: Ints, duration: Ints, kind: np.ndarray, event: Ints, site: Ints, step_edges: Ints
) -> tuple[Ints, Ints, np.ndarray, Ints, Ints]:
    """Join touching pieces that say the same, but never across the start or the end of a step (between windows no step runs)."""
    if len(start) < 2:
        return start, duration, kind, event, site
    new = np.append(True, (event[1:] != event[:-1]) | (site[1:] != site[:-1]) | (kind[1:] != kind[:-1]))
    new |= np.isin(start, step_edges)
    first = np.flatnonzero(new)
    return start[first], np.add.reduceat(duration, first), kind[first], event[first], site[first]
