"""The critical path through ranks: from the end of the last step back, always on the rank that the job waited for.

On a rank the path follows that rank until, going back, it meets a communication call that had waited for a later rank;
there it crosses to the rank that arrived last, at the time of its arrival. Times are aligned to the reference clock.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from explorer.analysis.ranks.query import query

if TYPE_CHECKING:
    import pyarrow as pa

    from explorer.analysis.engine import Engine


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
    steps = engine.sql(query("aligned_steps")).arrow()
    if not steps.num_rows:
        return []
    rank_of, start, end = (steps.column(name).to_numpy() for name in ("rank", "start_ns", "end_ns"))
    begin, moment = int(start.min()), int(end.max())
    rank = int(rank_of[end == moment].min())
    calls = engine.sql(query("path_waits")).arrow()
    waiting, crossing, left, last, match = (
        calls.column(name).to_numpy()
        for name in ("rank", "last_arrival_ns", "end_ns", "last_rank", "match_id")
    )
    sites = calls.column("site_id")
    pieces: list[JobPiece] = []
    while moment > begin:
        first, beyond = np.searchsorted(waiting, (rank, rank + 1))
        # The last call in which this rank waited whose last arrival lies before the moment.
        call = int(first + np.searchsorted(crossing[first:beyond], moment)) - 1
        if call < first or crossing[call] <= begin:
            pieces.append(JobPiece(rank, "own", begin, moment, None, None))
            break
        if moment > left[call]:
            pieces.append(JobPiece(rank, "own", int(left[call]), moment, None, None))
        upper = min(moment, int(left[call]))
        if upper > crossing[call]:
            pieces.append(
                JobPiece(rank, "transfer", int(crossing[call]), upper, int(match[call]), sites[call].as_py())
            )
        rank, moment = int(last[call]), int(crossing[call])
    return pieces[::-1]


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
