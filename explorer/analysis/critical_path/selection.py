"""Which events and lane pieces a change is about: a line, an op, a kernel, a category, a phase, a module, or given events.

A selected host event takes everything it encloses with it, and the device work that it or its children enqueued. An
event that belongs to several lines is selected with its line's share.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from explorer.analysis.critical_path.host_lane import Ints
from explorer.analysis.critical_path.rank_events import BY_STATE, RankEvents, own_code, row_numbers
from explorer.analysis.critical_path.replay import Floats, Replay
from explorer.model.errors import UsageError

if TYPE_CHECKING:
    from explorer.analysis.engine import Engine

WAYS: dict[str, str] = {
    "line": "FILE:LINE, a source line: its Python time, its ops, their backward and the device work they caused",
    "function": "NAME, every line of a function",
    "op": "NAME, a host op with all it encloses and enqueues",
    "kernel": "NAME, a device event",
    "category": "an event category on the host or a device (docs/categories.md)",
    "phase": "forward, backward, optimizer, data, ...",
    "module": "PATH, an nn.Module and all below it",
    "event": "RANK:EVENT_ID",
}
"""Ways to select, by keyword, with what stands after the equals sign."""

_NUMBER = re.compile(r"[0-9]{1,18}")

_SITES = {
    "line": "SELECT site_id FROM sites WHERE line = ?::BIGINT AND (file = ? OR ends_with(file, '/' || ?))",
    "function": "SELECT site_id FROM sites WHERE function = ? OR ends_with(function, '.' || ?)",
}

_EVENTS = {
    "op": "SELECT event_id FROM events WHERE rank = ? AND name = ?",
    "kernel": "SELECT event_id FROM events WHERE rank = ? AND name = ?",
    "category": "SELECT event_id FROM events WHERE rank = ? AND category = ?",
    "phase": "SELECT event_id FROM events WHERE rank = ? AND phase = ?",
    "module": (
        "SELECT e.event_id FROM events e JOIN modules m USING (module_id) "
        "WHERE e.rank = ? AND (m.path = ? OR starts_with(m.path, ? || '.'))"
    ),
}

_LINE_EVENTS = (
    "SELECT event_id, share FROM event_lines WHERE rank = ? AND site_id IN (SELECT unnest(?::BIGINT[]))"
)


@dataclass(frozen=True)
class Selection:
    """How much of each lane piece and each event is selected, 0 to 1."""

    lane: Floats
    event: Floats

    @property
    def is_empty(self) -> bool:
        return not (self.lane.any() or self.event.any())


def select(engine: Engine, replay: Replay, way: str, value: str) -> Selection:
    """Resolve one selection on one rank.

    Raises UsageError for an unknown way or a value of the wrong form; a name that does not occur gives an empty
    selection (another rank may have it).
    """
    rank = replay.events.rank
    if way in ("line", "function"):
        if way == "line":
            file, colon, number = value.rpartition(":")
            if not colon or not _NUMBER.fullmatch(number):
                raise UsageError(
                    f"'{value}' is not a source line.", "Write FILE:LINE, such as line=model.py:57."
                )
            parameters: list[object] = [int(number), file, file]
        else:
            parameters = [value, value]
        sites = engine.sql(_SITES[way], parameters).arrow().column("site_id").to_numpy()
        return select_sites(engine, replay, sites)
    if way == "event":
        head, _, number = value.rpartition(":")
        if not _NUMBER.fullmatch(number) or (head and not _NUMBER.fullmatch(head)):
            raise UsageError(f"'{value}' is not an event.", "Write RANK:EVENT_ID, such as event=0:1234.")
        return select_events(
            replay, np.array([int(number)] if not head or int(head) == rank else [], np.int64)
        )
    if way not in _EVENTS:
        raise UsageError(f"Cannot select by '{way}'.", f"Use one of: {', '.join(WAYS)}.")
    parameters = [rank, value, value] if way == "module" else [rank, value]
    return select_events(replay, engine.sql(_EVENTS[way], parameters).arrow().column("event_id").to_numpy())


def select_sites(engine: Engine, replay: Replay, sites: Ints) -> Selection:
    """Source lines by id: Python time at them, and their events with their shares."""
    events = replay.events
    rows = engine.sql(_LINE_EVENTS, [events.rank, [int(site) for site in sites]]).arrow()
    index = row_numbers(events.event_id, rows.column("event_id").to_numpy().astype(np.int64, copy=False))
    share = np.zeros(len(events))
    np.add.at(share, index[index >= 0], rows.column("share").to_numpy()[index >= 0])
    share = np.minimum(share, 1.0)
    own_line = np.isin(replay.lane_state, sites)
    # An op is charged to its own line only; Python around it to the line that was executing.
    event = np.maximum(replay.lane_event, 0)
    attributed = (replay.lane_event >= 0) & (events.site[event] > 0)
    attributed &= ~(np.isin(events.category[event], BY_STATE) & (replay.lane_state > 0))
    attributed &= ~own_code(events, replay.lane_start, replay.lane_event)
    return Selection(np.where(attributed, share[event], own_line.astype(np.float64)), share)


def select_events(replay: Replay, event_ids: Ints) -> Selection:
    """Events by id, with everything they enclose and enqueue."""
    events = replay.events
    chosen = np.zeros(len(events), bool)
    index = row_numbers(events.event_id, np.asarray(event_ids, np.int64))
    chosen[index[index >= 0]] = True
    chosen = _with_children(chosen, events)
    cause = (_holds(chosen, events.launch) | _holds(chosen, events.op)) & _on_device(events)
    share = (chosen | cause).astype(np.float64)
    lane = np.where(replay.lane_event >= 0, share[np.maximum(replay.lane_event, 0)], 0.0)
    return Selection(lane, share)


def _with_children(chosen: np.ndarray, events: RankEvents) -> np.ndarray:
    count = np.count_nonzero(chosen)
    while True:
        chosen = chosen | _holds(chosen, events.parent)
        before, count = count, np.count_nonzero(chosen)
        if count == before:
            return chosen


def _holds(chosen: np.ndarray, reference: Ints) -> np.ndarray:
    # -1 is the last one.
    return np.asarray(np.append(chosen, False)[reference])


def _on_device(events: RankEvents) -> np.ndarray:
    on_device = np.zeros(len(events), bool)
    on_device[events.device] = True
    return on_device
