"""What the host of each rank was doing at every instant: the computed table `host_segments`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from explorer.analysis.intervals import Intervals, Times
from explorer.model.schema import Column, Table

if TYPE_CHECKING:
    import pyarrow as pa

    from explorer.analysis.engine import Engine

Codes = npt.NDArray[np.int8]

HOST_SEGMENTS = Table(
    "host_segments",
    "What the host of each rank was doing at every instant: consecutive intervals, each with the first class that ran on any"
    " thread (`host_breakdown`). Where nothing ran there is none.",
    (
        Column("rank", "int32", "Process rank"),
        Column("start_ns", "int64", "Start of the interval", unit="ns"),
        Column("end_ns", "int64", "End of the interval", unit="ns"),
        Column("class", "string", "gc, compile, data, io, op, runtime, communication, sync or python"),
    ),
    sort_by=("start_ns",),
)

CLASSES = ("python", "sync", "communication", "runtime", "op", "io", "data", "compile", "gc")
"""Host classes, the weakest first: of those running at one instant the last counts."""

_WORKING, _BLOCKING = 4096, 32768
_COUNTER = {
    "python": 1,
    "sync": _WORKING,
    "communication": _WORKING**2,
    "runtime": _WORKING**3,
    "op": _WORKING**4,
}
_STOPPING = {"io": 1, "data": _BLOCKING, "compile": _BLOCKING**2, "gc": _BLOCKING**3}

# Class and weights of `host_classes`; the code is the place of the class in CLASSES.
_EVENTS = """
SELECT e.event_id, coalesce(e.parent_id, -1) AS parent_id, e.start_ns, e.start_ns + e.duration_ns AS end_ns, c.code
FROM events AS e
JOIN (SELECT category, (list_position(?, class) - 1)::TINYINT AS code FROM host_classes) AS c USING (category)
ANTI JOIN device_tracks AS d ON d.rank = e.rank AND d.track_id = e.track_id
WHERE e.rank = ?
"""

_STATES = """
SELECT track_id, start_ns, start_ns + duration_ns AS end_ns FROM host_states WHERE rank = ? AND site_id IS NOT NULL
"""


@dataclass(frozen=True)
class Segments:
    """Disjoint intervals of one rank in time order, each with the place of its class in CLASSES."""

    start_ns: Times
    end_ns: Times
    code: Codes

    def of_class(self, code: int) -> Intervals:
        """The intervals of one class."""
        mine = self.code == code
        return Intervals(self.start_ns[mine], self.end_ns[mine])


def compute(engine: Engine) -> pa.Table:
    """The segments of every rank."""
    import pyarrow as pa

    tables = []
    for rank in engine.reader.ranks:
        found = _segments(engine, rank)
        tables.append(
            pa.table(
                {
                    "rank": pa.array(np.full(len(found.code), rank, np.int32)),
                    "start_ns": found.start_ns,
                    "end_ns": found.end_ns,
                    "class": pa.DictionaryArray.from_arrays(pa.array(found.code), list(CLASSES)),
                }
            )
        )
    return pa.concat_tables(tables) if tables else HOST_SEGMENTS.arrow_schema().empty_table()


def host_segments(engine: Engine, rank: int) -> Segments:
    """The table's rows of one rank as arrays."""
    rows = engine.sql(
        "SELECT start_ns, end_ns, (list_position(?, class) - 1)::TINYINT AS code FROM host_segments WHERE rank = ?",
        [list(CLASSES), rank],
    ).arrow()
    start, end, code = (column(rows, name) for name in ("start_ns", "end_ns", "code"))
    if len(start) > 1 and not (start[1:] >= start[:-1]).all():
        order = np.argsort(start, kind="stable")
        start, end, code = start[order], end[order], code[order]
    return Segments(start, end, code)


def column(rows: pa.Table, name: str) -> npt.NDArray[Any]:
    """A column without nulls as an array."""
    return rows.column(name).to_numpy()


def _segments(engine: Engine, rank: int) -> Segments:
    times, stopping, working = _boundaries(engine, rank)
    order = np.argsort(times, kind="stable")
    times = times[order]
    last = np.append(times[1:] != times[:-1], True) if len(times) else np.zeros(0, bool)
    counters = [np.cumsum(change[order])[last] if len(change) else change for change in (stopping, working)]
    times, code = times[last], _class_codes(*counters)
    if len(code) > 1:
        changed = np.append(True, code[1:] != code[:-1])
        times, code = times[changed], code[changed]
    end = np.append(times[1:], times[-1:])
    kept = (code >= 0) & (end > times)
    return Segments(times[kept], end[kept], code[kept])


def _class_codes(stopping: Times, working: Times) -> Codes:
    """Class of each instant from its counters; -1: none. The highest digit that is not 0 is the class."""
    code = np.full(len(working), -1, np.int8)
    for counter, weights in ((working, _COUNTER), (stopping, _STOPPING)):
        if len(counter):
            for name, weight in weights.items():
                code[counter >= weight] = CLASSES.index(name)
    return code


def _boundaries(engine: Engine, rank: int) -> tuple[Times, Times, Times]:
    """When the counters change, and by how much (the counter of classes that stop everything else is empty where none ran).

    A call inside an op takes the op's place while it runs, an op inside an op changes nothing.
    """
    rows = engine.sql(_EVENTS, [list(CLASSES), rank]).arrow()
    code = column(rows, "code")
    parent = _codes_of(column(rows, "event_id"), code, column(rows, "parent_id"))
    start, end = column(rows, "start_ns"), column(rows, "end_ns")
    kept = (end > start) & (code != parent)
    start, end, code, parent = start[kept], end[kept], code[kept], parent[kept]
    # One more entry in each direction: code -1 is no class.
    working = np.array([_COUNTER.get(name, 0) for name in (*CLASSES, "")], np.int64)
    nesting = np.where(working > 1, working, 0)
    change_of = working[:, None] - np.where(working[:, None] > 1, nesting[None, :], 0)
    change = change_of[code, parent]
    line_start, line_end = _lined(engine, rank)
    ones = np.ones(len(line_start), np.int64)
    times = np.concatenate([start, end, line_start, line_end])
    stopping = np.zeros(0, np.int64)
    if np.isin(code, [CLASSES.index(name) for name in _STOPPING]).any():
        stop = np.array([_STOPPING.get(name, 0) for name in (*CLASSES, "")], np.int64)[code]
        stopping = np.concatenate([stop, -stop, 0 * ones, 0 * ones])
    return times, stopping, np.concatenate([change, -change, ones, -ones])


def _codes_of(event_id: Times, code: Codes, wanted: Times) -> Codes:
    """The codes of the events with the wanted ids; -1 where there is none."""
    if not len(event_id):
        return np.full(len(wanted), -1, np.int8)
    first, last = int(event_id.min()), int(event_id.max())
    if first >= 0 and last < 8 * len(event_id) + 1_000_000:
        by_id = np.full(last + 2, -1, np.int8)
        by_id[event_id] = code
        return by_id[np.where((wanted >= 0) & (wanted <= last), wanted, last + 1)]
    order = np.argsort(event_id, kind="stable")
    slot = np.minimum(np.searchsorted(event_id, wanted, sorter=order), len(event_id) - 1)
    return np.where(event_id[order[slot]] == wanted, code[order[slot]], -1).astype(np.int8)


def _lined(engine: Engine, rank: int) -> tuple[Times, Times]:
    """Where a user line is executed. Line states follow each other without a gap: chains of them are joined."""
    rows = engine.sql(_STATES, [rank]).arrow()
    track, start, end = (column(rows, name) for name in ("track_id", "start_ns", "end_ns"))
    if not len(start):
        return start, end
    order = by_track(track, start)
    track, start, end = track[order], start[order], end[order]
    begins = np.append(True, (track[1:] != track[:-1]) | (start[1:] != end[:-1]))
    return start[begins], end[np.append(begins[1:], True)]


def by_track(track: npt.NDArray[Any], *keys: Times) -> Times:
    """The order by track, then by the keys (the first first); one sort where there is one track and one key."""
    if len(keys) == 1 and (not len(track) or (track == track[0]).all()):
        return np.argsort(keys[0], kind="stable")
    return np.lexsort((*reversed(keys), track))


def time_by_class(segments: Segments, start_ns: Times, end_ns: Times) -> list[Times]:
    """Time of each class (in the order of CLASSES) inside each interval."""
    present: Sequence[int] = np.unique(segments.code).tolist() if len(segments.code) else []
    none = np.zeros(len(start_ns), np.int64)
    times = [none] * len(CLASSES)
    for code in present:
        mine = segments.of_class(code)
        times[code] = mine.covered_before(end_ns) - mine.covered_before(start_ns)
    return times
