"""The events of one rank as arrays, with the host lane, the device streams and the waits that tie them together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from explorer.analysis.critical_path.host_lane import Ints, Pieces, at, fill, innermost, whole
from explorer.analysis.critical_path.query import statement
from explorer.model.vocabulary import CATEGORIES, DEVICE_WORK

if TYPE_CHECKING:
    import pyarrow as pa

    from explorer.analysis.engine import Engine

PASSIVE = ("python", "annotation", "step", "other", "overhead")
"""Host categories that name a range but are no work of their own."""

BY_STATE = ("data",)
"""Host categories whose time belongs to the line that was executing inside them, where that was recorded: a DataLoader
without workers runs the dataset's own code."""

CALLS_BACK = ("op",)
"""Host categories that may call user code while they run."""

_SPARSE = 8
"""Ids spread over more than this many times their number are searched for rather than held in a table."""


@dataclass(frozen=True)
class Steps:
    """The steps of a rank in time order."""

    number: Ints
    start: Ints
    end: Ints
    complete: NDArray[np.bool_]


@dataclass(frozen=True)
class RankEvents:
    """All events of a rank, sorted by start; references between them are indices (-1: none).

    `lane` covers [begin, finish) without holes; `states` are the recorded user lines of the driving thread.
    `device` lists device work by start. `sync` are host calls that really waited: call index and awaited device event.
    """

    rank: int
    event_id: Ints
    category: NDArray[np.object_]
    start: Ints
    end: Ints
    parent: Ints
    launch: Ints
    op: Ints
    site: Ints
    track: Ints
    device: Ints
    lane: Pieces
    states: Pieces
    sync_call: Ints
    sync_event: Ints
    wait_source: Ints
    wait_target: Ints
    steps: Steps
    begin: int
    finish: int
    thread: int

    def __len__(self) -> int:
        return len(self.event_id)


ALWAYS = (-(1 << 62), 1 << 62)
"""All of a recording as a stretch of time."""


def load(engine: Engine, rank: int, window: tuple[int, int] = ALWAYS) -> RankEvents | None:
    """Read one rank, or of it what happened in a stretch of time (start and end in ns) with the steps that lie in it whole.
    None when there are no events."""
    known: Sequence[str] = tuple(CATEGORIES)
    rows = engine.sql(statement("rank_events"), [list(known), rank, *window]).arrow()
    if not rows.num_rows:
        return None
    numbers = rows.column("category").to_numpy()
    if not numbers.all():
        # A newer writer or another tool may know more categories.
        known = engine.sql(statement("rank_categories"), [rank]).arrow().column("category").to_pylist()
        rows = engine.sql(statement("rank_events"), [list(known), rank, *window]).arrow()
        numbers = rows.column("category").to_numpy()

    def ints(name: str) -> Ints:
        return rows.column(name).to_numpy().astype(np.int64, copy=False)

    order = by_start(ints("start_ns"), ints("end_ns"), ints("event_id"))

    def ordered(name: str) -> Ints:
        return ints(name) if order is None else ints(name)[order]

    event_id, start, end, track = (ordered(name) for name in ("event_id", "start_ns", "end_ns", "track_id"))
    numbers = numbers if order is None else numbers[order]
    category = np.array(["", *known], dtype=object)[numbers]
    on_device = ordered("on_device").astype(bool)
    row_of = RowNumbers(event_id)
    parent, launch = row_of(ordered("parent_id")), row_of(ordered("launch_id"))
    states = engine.sql(statement("rank_states"), [rank, *window]).arrow()
    steps = _steps(engine, rank, window)
    host = ~on_device
    thread = _driving_thread(track, category, start, end, host, launch, states.column("track_id").to_numpy())
    device = np.flatnonzero(on_device & _among(known, DEVICE_WORK)[numbers])
    begin, finish = _span(start[host] if host.any() else start, end[host] if host.any() else end, steps)
    passive_event = _among(known, PASSIVE)[numbers]
    lane = _lane(np.flatnonzero(host & (track == thread)), start, end, parent)
    for other in _helper_threads(track, category, host, thread):
        pieces = _lane(np.flatnonzero(host & (track == other)), start, end, parent)
        busy = ~passive_event[pieces.event]
        helper = Pieces(pieces.start[busy], pieces.end[busy], pieces.event[busy])
        lane = fill(lane, helper, passive_event[lane.event])
    sync_call, sync_event = _syncs(np.flatnonzero(host), device, category, start, end, launch)
    waits = engine.sql(statement("device_waits"), [rank]).arrow()
    source, target = (
        row_of(waits.column(name).to_numpy().astype(np.int64, copy=False))
        for name in ("source_id", "target_id")
    )
    tied = (source >= 0) & (target >= 0)
    return RankEvents(
        rank=rank,
        event_id=event_id,
        category=category,
        start=start,
        end=end,
        parent=parent,
        launch=launch,
        op=row_of(ordered("op_id")),
        site=ordered("site_id"),
        track=track,
        device=device,
        lane=whole(lane, begin, finish),
        states=_states(states, thread),
        sync_call=sync_call,
        sync_event=sync_event,
        wait_source=source[tied],
        wait_target=target[tied],
        steps=steps,
        begin=begin,
        finish=finish,
        thread=thread,
    )


def by_start(start: Ints, end: Ints, event_id: Ints) -> Ints | None:
    """Places of events by start, the longest first, then by id; None where they are in this order already."""
    if _in_order(start, end, event_id):
        return None
    # Rows come in a few sorted stretches, which a stable sort only merges.
    order = np.argsort(start, kind="stable")
    start, end, event_id = start[order], end[order], event_id[order]
    if _in_order(start, end, event_id):
        return order
    return order[np.lexsort((event_id, -end, start))]


def _in_order(start: Ints, end: Ints, event_id: Ints) -> bool:
    if (start[1:] < start[:-1]).any():
        return False
    at = np.flatnonzero(start[1:] == start[:-1])
    longer = end[at] > end[at + 1]
    return bool((longer | ((end[at] == end[at + 1]) & (event_id[at] <= event_id[at + 1]))).all())


def _among(known: Sequence[str], wanted: Sequence[str]) -> NDArray[np.bool_]:
    """By number of a category (0: none of those known): whether it is one of these."""
    return np.array([False, *(name in wanted for name in known)])


class RowNumbers:
    """Row numbers of event ids; of an id that stands twice the first. Ids mostly follow one another, then a table of them
    all answers at once."""

    def __init__(self, event_id: Ints) -> None:
        self._ids = event_id
        self._first, self._table, self._order = 0, None, None
        if not len(event_id):
            return
        first, last = int(event_id.min()), int(event_id.max())
        if last - first < _SPARSE * len(event_id):
            self._first = first
            self._table = np.full(last - first + 1, -1, np.int64)
            self._table[event_id[::-1] - first] = np.arange(len(event_id) - 1, -1, -1)
        else:
            self._order = np.argsort(event_id, kind="stable")

    _table: Ints | None
    _order: Ints | None

    def __call__(self, wanted: Ints) -> Ints:
        """-1 where there is none."""
        if self._table is not None:
            place = wanted - self._first
            inside = (place >= 0) & (place < len(self._table))
            return np.where(inside, self._table[np.where(inside, place, 0)], -1)
        if self._order is None:
            return np.full(len(wanted), -1, np.int64)
        slot = np.searchsorted(self._ids, wanted, sorter=self._order)
        found = self._order[np.minimum(slot, len(self._ids) - 1)]
        return np.where(self._ids[found] == wanted, found, -1)


def row_numbers(event_id: Ints, wanted: Ints) -> Ints:
    """Row numbers of event ids; -1 where there is none."""
    return RowNumbers(event_id)(wanted)


def _driving_thread(
    track: Ints,
    category: NDArray[np.object_],
    start: Ints,
    end: Ints,
    host: NDArray[np.bool_],
    launch: Ints,
    traced: Ints,
) -> int:
    """The thread with step marks, else with recorded user code, else with the longest span of host events."""
    marks = track[host & (category == "step")]
    if len(marks):
        return int(np.bincount(marks).argmax())
    if len(traced):
        return int(np.bincount(traced).argmax())
    best, longest = -1, -1
    for one in np.unique(track[host]):
        mine = host & (track == one)
        work = int((end[mine] - start[mine]).max(initial=0)) + int(mine.sum())
        if work > longest:
            best, longest = int(one), work
    return best


def _helper_threads(
    track: Ints, category: NDArray[np.object_], host: NDArray[np.bool_], thread: int
) -> list[int]:
    """Other host threads that ran framework ops: on accelerators, the autograd engine's."""
    mask = host & (track != thread) & (category == "op")
    numbers, counts = np.unique(track[mask], return_counts=True)
    return [int(number) for number in numbers[np.argsort(-counts)]]


def _lane(rows: Ints, start: Ints, end: Ints, parent: Ints) -> Pieces:
    position = np.full(len(start), -1, np.int64)
    position[rows] = np.arange(len(rows))
    enclosing = np.where(parent[rows] >= 0, position[np.maximum(parent[rows], 0)], -1)
    pieces = innermost(start[rows], end[rows], enclosing)
    return Pieces(pieces.start, pieces.end, rows[pieces.event] if len(pieces) else pieces.event)


def own_code(events: RankEvents, times: Ints, event: Ints) -> NDArray[np.bool_]:
    """Whether at each time the driving thread ran a user line that the op (`event`, -1: none) had called: a hook, the
    Python part of a custom op. Such a line began after the op did, and is neither the op's line nor the one that called it."""
    states = events.states
    if not len(states):
        return np.zeros(len(times), np.bool_)
    begun = events.start[np.maximum(event, 0)]
    slot = np.maximum(np.searchsorted(states.start, times, "right") - 1, 0)
    line = at(states, times)
    found = (event >= 0) & (line > 0) & (states.start[slot] > begun) & (line != at(states, begun))
    found &= line != events.site[np.maximum(event, 0)]
    return np.asarray(found & np.isin(events.category[np.maximum(event, 0)], CALLS_BACK))


def _states(states: pa.Table, thread: int) -> Pieces:
    columns = {
        name: states.column(name).to_numpy().astype(np.int64)
        for name in ("track_id", "start_ns", "end_ns", "site_id")
    }
    mine = columns["track_id"] == thread
    return Pieces(columns["start_ns"][mine], columns["end_ns"][mine], columns["site_id"][mine])


def _syncs(
    host: Ints, device: Ints, category: NDArray[np.object_], start: Ints, end: Ints, launch: Ints
) -> tuple[Ints, Ints]:
    """Host calls that waited for the device, with the device event whose end released them.

    A synchronisation call is released by the device event that ends last inside the call. A runtime call that holds the
    end of the very device event it enqueued is blocking too (a pageable copy).
    """
    if not len(device):
        empty = np.zeros(0, np.int64)
        return empty, empty
    by_end = device[np.argsort(end[device], kind="stable")]
    calls = host[category[host] == "sync"]
    slot = np.searchsorted(end[by_end], end[calls], "right") - 1
    last = by_end[np.maximum(slot, 0)]
    waited = (slot >= 0) & (end[last] > start[calls])
    call, event = calls[waited], last[waited]
    linked = device[launch[device] >= 0]
    origin = launch[linked]
    blocking = (category[origin] == "runtime") & (end[linked] <= end[origin]) & (end[linked] > start[origin])
    call, event = np.concatenate([call, origin[blocking]]), np.concatenate([event, linked[blocking]])
    order = np.lexsort((end[event], end[call]))
    call, event = call[order], event[order]
    last_of_call = np.append(call[1:] != call[:-1], True) if len(call) else np.zeros(0, bool)
    return call[last_of_call], event[last_of_call]


def _steps(engine: Engine, rank: int, window: tuple[int, int]) -> Steps:
    rows = engine.sql(statement("rank_steps"), [rank, *window]).arrow()
    number, start, end = (
        rows.column(name).to_numpy().astype(np.int64) for name in ("step", "start_ns", "end_ns")
    )
    return Steps(number, start, end, rows.column("complete").to_numpy().astype(bool))


def _span(start: Ints, end: Ints, steps: Steps) -> tuple[int, int]:
    """From the first step's start to the last step's end; without steps the span of host events."""
    if len(steps.number):
        return int(steps.start.min()), int(steps.end.max())
    return int(start.min()), int(end.max())
