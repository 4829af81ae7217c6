"""What the host did while a device waited for work not yet enqueued: the computed table `gap_blame`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from explorer.analysis.host_segments import CLASSES, column, host_segments, time_by_class
from explorer.analysis.intervals import Times
from explorer.model.schema import Column, Table

if TYPE_CHECKING:
    import pyarrow as pa

    from explorer.analysis.engine import Engine

GAP_BLAME = Table(
    "gap_blame",
    "What the host did longest in each idle interval until it had enqueued the next work, and the line the main thread"
    " executed longest meanwhile; only intervals whose next work had not been enqueued when they began.",
    (
        Column("rank", "int32", "Process rank"),
        Column("place", "int64", "Number of the device (rank_devices)"),
        Column("number", "int64", "Number of the idle interval (idle_intervals)"),
        Column("class", "string", "Class of `host_segments` with most time, or host_unknown"),
        Column("class_ns", "int64", "Its time", unit="ns"),
        Column("site_id", "int64", "The line; null without line states", nullable=True),
    ),
)

UNKNOWN = "host_unknown"
_NAMES = sorted((*CLASSES, UNKNOWN))

_LATE = """
SELECT i.rank, d.place, i.number, i.start_ns, least(i.end_ns, coalesce(i.launch_ns, i.end_ns)) AS end_ns
FROM idle_intervals AS i JOIN rank_devices AS d USING (rank, device)
WHERE coalesce(i.launch_ns, i.end_ns) > i.start_ns
"""

_STATES = """
SELECT start_ns, start_ns + duration_ns AS end_ns, site_id FROM host_states JOIN main_threads USING (rank, track_id)
WHERE rank = ? AND site_id > 0 AND duration_ns > 0
"""


def compute(engine: Engine) -> pa.Table:
    """One row per idle interval in which the host was late."""
    import pyarrow as pa

    late = engine.sql(_LATE).arrow()
    rank_of = column(late, "rank")
    ranks = np.unique(rank_of).tolist() if late.num_rows else []
    tables = []
    for rank in ranks:
        rows = late if len(ranks) == 1 else late.filter(pa.array(rank_of == rank))
        # By start: nearby lookups are fast ones.
        rows = rows.take(pa.array(np.argsort(column(rows, "start_ns"), kind="stable")))
        start, end = column(rows, "start_ns"), column(rows, "end_ns")
        name, class_ns = _longest_class(engine, rank, start, end)
        site, known = _longest_line(engine, rank, start, end)
        tables.append(
            pa.table(
                {
                    "rank": rows.column("rank"),
                    "place": rows.column("place"),
                    "number": rows.column("number"),
                    "class": pa.DictionaryArray.from_arrays(pa.array(name), _NAMES),
                    "class_ns": class_ns,
                    "site_id": pa.array(site, mask=~known),
                }
            )
        )
    return pa.concat_tables(tables) if tables else GAP_BLAME.arrow_schema().empty_table()


def _longest_class(
    engine: Engine, rank: int, start_ns: Times, end_ns: Times
) -> tuple[npt.NDArray[np.int8], Times]:
    """Of each interval the class with most time, as a place in _NAMES, and its time; of equal ones the last name."""
    times = dict(zip(CLASSES, time_by_class(host_segments(engine, rank), start_ns, end_ns)))
    unknown = end_ns - start_ns
    for inside in times.values():
        unknown = unknown - inside
    times[UNKNOWN] = unknown
    best, best_ns = np.zeros(len(start_ns), np.int8), np.zeros(len(start_ns), np.int64)
    for number, name in enumerate(_NAMES):
        longer = (times[name] >= best_ns) & (times[name] > 0)
        best[longer], best_ns[longer] = number, times[name][longer]
    return best, best_ns


def _longest_line(
    engine: Engine, rank: int, start_ns: Times, end_ns: Times
) -> tuple[Times, npt.NDArray[np.bool_]]:
    """Of each interval the line that was executed longest, and whether there was one; of equal ones the largest id."""
    site = np.zeros(len(start_ns), np.int64)
    rows = engine.sql(_STATES, [rank]).arrow()
    if not rows.num_rows:
        return site, site > 0
    order = np.argsort(column(rows, "start_ns"), kind="stable")
    states = {name: column(rows, name)[order] for name in ("start_ns", "end_ns", "site_id")}
    gap, state = _overlapping(states, start_ns, end_ns)
    if not len(gap):
        return site, site > 0
    length = np.minimum(states["end_ns"][state], end_ns[gap]) - np.maximum(
        states["start_ns"][state], start_ns[gap]
    )
    line = states["site_id"][state]
    order = np.lexsort((line, gap))
    gap, line, length = gap[order], line[order], length[order]
    first = np.flatnonzero(np.append(True, (gap[1:] != gap[:-1]) | (line[1:] != line[:-1])))
    total = np.add.reduceat(length, first)
    gap, line = gap[first], line[first]
    order = np.lexsort((line, total, gap))
    # The last entry of a gap is the longest.
    site[gap[order]] = line[order]
    return site, site > 0


def _overlapping(states: dict[str, Any], start_ns: Times, end_ns: Times) -> tuple[Times, Times]:
    """All pairs of an interval and a state (one thread's, in time order) that share time."""
    low = np.searchsorted(states["end_ns"], start_ns, "right")
    high = np.searchsorted(states["start_ns"], end_ns, "left")
    count = np.maximum(high - low, 0)
    gap = np.repeat(np.arange(len(count)), count)
    offset = np.arange(len(gap)) - np.repeat(np.cumsum(count) - count, count)
    return gap, low[gap] + offset
