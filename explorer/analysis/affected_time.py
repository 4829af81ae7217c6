"""The time that a draft's advice would shrink, as arrays: asked once, for the finding's size, its overlaps and its replay."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from explorer.analysis.engine import Engine
from explorer.analysis.intervals import Times


@dataclass(frozen=True, slots=True)
class AffectedTime:
    """One entry per row of a draft's `affected`, overlapping or not; `event_id` is None where the rows are no events."""

    start_ns: Times
    end_ns: Times
    event_id: Times | None

    def __len__(self) -> int:
        return len(self.start_ns)


def affected_time(engine: Engine, affected: str) -> AffectedTime:
    """The rows of `affected` (SQL for start_ns, duration_ns and, of events, event_id)."""
    rows = engine.sql(f"SELECT * FROM ({affected})").arrow()

    def times(name: str) -> Times:
        return rows.column(name).to_numpy().astype(np.int64, copy=False)

    start = times("start_ns")
    return AffectedTime(
        start, start + times("duration_ns"), times("event_id") if "event_id" in rows.column_names else None
    )
