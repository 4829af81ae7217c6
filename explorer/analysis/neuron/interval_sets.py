"""Union, intersection and difference of sets of intervals."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from explorer.analysis.intervals import Intervals


def _sweep(left: Intervals, right: Intervals, wanted: int) -> Intervals:
    """Stretches whose state is `wanted`: bit 0 left, bit 1 right."""
    times = np.concatenate([left.start_ns, left.end_ns, right.start_ns, right.end_ns])
    one, two = len(left.start_ns), len(right.start_ns)
    delta = np.repeat(np.array([1, -1, 2, -2]), [one, one, two, two])
    order = np.argsort(times, kind="stable")
    times, state = times[order], np.cumsum(delta[order])
    if not len(times):
        return Intervals.of([], [])
    keep = (state[:-1] == wanted) & (times[1:] > times[:-1])
    return Intervals.of(times[:-1][keep], times[1:][keep])


def union_of(sets: Sequence[Intervals]) -> Intervals:
    """Time in any of them."""
    if not sets:
        return Intervals.of([], [])
    return Intervals.of(
        np.concatenate([each.start_ns for each in sets]), np.concatenate([each.end_ns for each in sets])
    )


def intersect(left: Intervals, right: Intervals) -> Intervals:
    """Time in both."""
    return _sweep(left, right, 3)


def subtract(left: Intervals, right: Intervals) -> Intervals:
    """Time in left and not in right."""
    return _sweep(left, right, 1)


def clip(intervals: Intervals, start_ns: int, end_ns: int) -> Intervals:
    """The part inside a window."""
    return Intervals.of(
        np.clip(intervals.start_ns, start_ns, end_ns), np.clip(intervals.end_ns, start_ns, end_ns)
    )
