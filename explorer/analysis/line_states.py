"""Wall time of each thread at each source line: the computed table `line_states`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from explorer.analysis.host_segments import by_track, column
from explorer.analysis.intervals import Intervals, Times
from explorer.model.schema import Column, Table

if TYPE_CHECKING:
    import pyarrow as pa

    from explorer.analysis.engine import Engine

LINE_STATES = Table(
    "line_states",
    "Wall time of each thread at each source line, split into ops, other host activity and plain Python. From host_states"
    " where the rank has them; the split counts time once however deeply events are nested.",
    (
        Column("rank", "int32", "Process rank"),
        Column("track_id", "int32", "Track of the thread"),
        Column("site_id", "int64", "The line being executed; null: no user line", nullable=True),
        Column("host_ns", "int64", "Time the thread spent executing this line itself", unit="ns"),
        Column("op_ns", "int64", "Part of it inside framework ops", unit="ns"),
        Column(
            "other_ns",
            "int64",
            "Part of it outside ops, inside runtime calls, waits, compilation, collection or I/O",
            unit="ns",
        ),
        Column(
            "python_ns",
            "int64",
            "The rest: Python itself. A data-loading range is a frame around the user's own Dataset code: its time belongs to"
            " the lines executed in it",
            unit="ns",
        ),
    ),
)

_EVENTS = """
SELECT track_id, start_ns, start_ns + duration_ns AS end_ns, (category = 'op')::TINYINT AS op
FROM events
WHERE rank = ? AND category IN ('op', 'runtime', 'sync', 'compile', 'gc', 'io', 'collective')
  AND track_id IN (SELECT track_id FROM host_states WHERE rank = ?)
"""

_STATES = """
SELECT track_id, start_ns, start_ns + duration_ns AS end_ns, coalesce(site_id, 0) AS site_id
FROM host_states WHERE rank = ? AND duration_ns > 0
"""


def compute(engine: Engine) -> pa.Table:
    """One row per rank, thread and line."""
    import pyarrow as pa

    tables = []
    for rank in engine.reader.ranks:
        states = engine.sql(_STATES, [rank]).arrow()
        if not states.num_rows:
            continue
        events = engine.sql(_EVENTS, [rank, rank]).arrow()
        event_track, is_op = column(events, "track_id"), column(events, "op").astype(bool)
        event_start, event_end = column(events, "start_ns"), column(events, "end_ns")
        track = column(states, "track_id")
        order = by_track(track, column(states, "start_ns"))
        track = track[order]
        start, end, site = (column(states, name)[order] for name in ("start_ns", "end_ns", "site_id"))
        bounds = np.flatnonzero(np.append(True, track[1:] != track[:-1])).tolist()
        for first, last in zip(bounds, [*bounds[1:], len(track)]):
            mine = event_track == track[first]
            op = Intervals.of(event_start[mine & is_op], event_end[mine & is_op])
            called = op.union(Intervals.of(event_start[mine & ~is_op], event_end[mine & ~is_op]))
            own = slice(first, last)
            found = _by_line(start[own], end[own], site[own], op, called)
            count = len(found["host_ns"])
            tables.append(
                pa.table(
                    {
                        "rank": np.full(count, rank, np.int32),
                        "track_id": np.full(count, track[first], np.int32),
                        "site_id": pa.array(found["site_id"], mask=found["site_id"] == 0),
                        **{name: found[name] for name in ("host_ns", "op_ns", "other_ns", "python_ns")},
                    }
                )
            )
    return pa.concat_tables(tables) if tables else LINE_STATES.arrow_schema().empty_table()


def _by_line(start: Times, end: Times, site: Times, op: Intervals, called: Intervals) -> dict[str, Times]:
    """Sums by line of one thread's states: all, inside ops, inside other calls, the rest."""
    host = end - start
    in_op = op.covered_before(end) - op.covered_before(start)
    in_call = called.covered_before(end) - called.covered_before(start)
    order = np.argsort(site, kind="stable")
    site = site[order]
    first = np.flatnonzero(np.append(True, site[1:] != site[:-1]))
    host_ns, op_ns, call_ns = (np.add.reduceat(values[order], first) for values in (host, in_op, in_call))
    return {
        "site_id": site[first],
        "host_ns": host_ns,
        "op_ns": op_ns,
        "other_ns": call_ns - op_ns,
        "python_ns": host_ns - call_ns,
    }
