"""The critical path through ranks: from the end of the last step back, always on the rank that the job waited for.

On a rank the path follows that rank until, going back, it meets a communication call that had waited for a later rank;
there it crosses to the rank that arrived last, at the time of its arrival. Times are aligned to the reference clock.
"""

from __future__ import annotations

import bisect
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

    from explorer.analysis.engine import Engine

_CALLS = """
SELECT match_id, rank, exposed_wait_ns, last_arrival_ns, end_ns, last_rank, residual_ns, site_id, operation
FROM collective_waits WHERE ranks_seen > 1 ORDER BY rank, end_ns
"""

_SPANS = """
SELECT s.rank, s.step, s.complete,
       s.start_ns - round(c.offset_ns + c.drift_ppb * (s.start_ns - c.reference_ns) / 1e9)::BIGINT AS start_ns,
       s.start_ns + s.wall_ns - round(c.offset_ns + c.drift_ppb * (s.start_ns + s.wall_ns - c.reference_ns) / 1e9)::BIGINT AS end_ns
FROM rank_steps AS s JOIN rank_clocks AS c USING (rank) ORDER BY s.rank, start_ns
"""


@dataclass(frozen=True, slots=True)
class JobPiece:
    """A stretch of the path on one rank. `kind` is own (the rank's own work, its own transfers included) or transfer (the
    call through which the path came to another rank)."""

    rank: int
    kind: str
    start_ns: int
    end_ns: int
    match_id: int | None
    site_id: int | None


def job_path(engine: Engine) -> list[JobPiece]:
    """The path in time order; its pieces touch and cover the job from its first step to its last. Empty without steps."""
    spans = engine.sql(_SPANS).rows()
    if not spans:
        return []
    begin = min(row["start_ns"] for row in spans)
    last = max(spans, key=lambda row: (row["end_ns"], -row["rank"]))
    calls = _by_rank(engine)
    pieces: list[JobPiece] = []
    rank, moment = last["rank"], last["end_ns"]
    while moment > begin:
        call = _before(calls.get(rank), moment)
        if call is None or call["last_arrival_ns"] <= begin:
            pieces.append(JobPiece(rank, "own", begin, moment, None, None))
            break
        if moment > call["end_ns"]:
            pieces.append(JobPiece(rank, "own", call["end_ns"], moment, None, None))
        crossing = call["last_arrival_ns"]
        upper = min(moment, call["end_ns"])
        if upper > crossing:
            pieces.append(JobPiece(rank, "transfer", crossing, upper, call["match_id"], call["site_id"]))
        rank, moment = call["last_rank"], crossing
    return pieces[::-1]


def _by_rank(engine: Engine) -> dict[int, tuple[list[int], list[dict[str, Any]]]]:
    """Calls in which a rank really waited for another, by rank, in order of their last arrival."""
    calls: dict[int, list[dict[str, Any]]] = {}
    for row in engine.sql(_CALLS).rows():
        if row["last_rank"] != row["rank"] and row["exposed_wait_ns"] > row["residual_ns"]:
            calls.setdefault(row["rank"], []).append(row)
    found = {}
    for rank, rows in calls.items():
        rows.sort(key=lambda row: row["last_arrival_ns"])
        found[rank] = ([row["last_arrival_ns"] for row in rows], rows)
    return found


def _before(calls: tuple[list[int], list[dict[str, Any]]] | None, moment: int) -> dict[str, Any] | None:
    """The last such call whose last arrival lies before the moment."""
    if calls is None:
        return None
    arrivals, rows = calls
    number = bisect.bisect_left(arrivals, moment) - 1
    return rows[number] if number >= 0 else None


def compute(engine: Engine) -> pa.Table:
    """The path as the computed table `job_path`."""
    import pyarrow as pa

    from explorer.analysis.computed import JOB_PATH

    rows = [
        {
            "rank": piece.rank,
            "kind": piece.kind,
            "start_ns": piece.start_ns,
            "duration_ns": piece.end_ns - piece.start_ns,
            "match_id": piece.match_id,
            "site_id": piece.site_id,
        }
        for piece in job_path(engine)
    ]
    return pa.Table.from_pylist(rows, JOB_PATH.arrow_schema())
