"""Interval arithmetic on numpy arrays: unions, overlaps and counts, so that no time is counted twice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Times = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Intervals:
    """Disjoint half-open intervals in time order: start_ns[i] <= t < end_ns[i], end_ns[i] < start_ns[i + 1]."""

    start_ns: Times
    end_ns: Times

    @classmethod
    def of(cls, start_ns: Any, end_ns: Any) -> Intervals:
        """The union of any intervals, in any order, overlapping or not; empty and negative ones vanish."""
        start = np.asarray(start_ns, dtype=np.int64)
        end = np.asarray(end_ns, dtype=np.int64)
        keep = end > start
        if not keep.all():
            start, end = start[keep], end[keep]
        if not len(start):
            return cls(start, end)
        # Most come in order, millions of them: looking is cheaper than sorting.
        if (start[1:] < start[:-1]).any():
            order = np.argsort(start, kind="stable")
            start, end = start[order], end[order]
        end = np.maximum.accumulate(end)
        # A new interval begins where the start lies beyond everything before it; touching ones join.
        first = np.r_[True, start[1:] > end[:-1]]
        last = np.r_[first[1:], True]
        return cls(start[first], end[last])

    @property
    def total_ns(self) -> int:
        return int((self.end_ns - self.start_ns).sum())

    def covered_before(self, time_ns: Times) -> Times:
        """How much of these intervals lies before each time."""
        if not len(self.start_ns):
            return np.zeros(len(time_ns), dtype=np.int64)
        index = np.searchsorted(self.start_ns, time_ns, side="right")
        full = np.r_[0, np.cumsum(self.end_ns - self.start_ns)]
        # Of the last interval begun, only the part up to the time counts.
        over = np.maximum(0, self.end_ns[index - 1] - time_ns)
        return np.where(index > 0, full[index] - over, 0).astype(np.int64)

    def overlap_ns(self, other: Intervals) -> int:
        """Length of the intersection."""
        return int((other.covered_before(self.end_ns) - other.covered_before(self.start_ns)).sum())

    def union(self, other: Intervals) -> Intervals:
        return Intervals.of(np.r_[self.start_ns, other.start_ns], np.r_[self.end_ns, other.end_ns])

    def within(self, start_ns: int, end_ns: int) -> Intervals:
        """The part of these intervals between two times."""
        first = int(np.searchsorted(self.end_ns, start_ns, side="right"))
        last = int(np.searchsorted(self.start_ns, end_ns, side="left"))
        return Intervals(
            np.maximum(self.start_ns[first:last], start_ns), np.minimum(self.end_ns[first:last], end_ns)
        )

    def count_of(self, sorted_times_ns: Times) -> int:
        """How many of the sorted times lie inside."""
        before = np.searchsorted(sorted_times_ns, self.start_ns, side="left")
        after = np.searchsorted(sorted_times_ns, self.end_ns, side="left")
        return int((after - before).sum())
