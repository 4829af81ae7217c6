"""Interval arithmetic against counting single nanoseconds."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from explorer.analysis.intervals import Intervals

pairs = st.lists(st.tuples(st.integers(0, 60), st.integers(-3, 15)), max_size=12)


def made(items: list[tuple[int, int]]) -> tuple[Intervals, set[int]]:
    points = {t for start, length in items for t in range(start, start + length)}
    return Intervals.of([s for s, _ in items], [s + d for s, d in items]), points


@given(pairs)
def test_union_counts_each_point_once(items: list[tuple[int, int]]) -> None:
    intervals, points = made(items)
    assert intervals.total_ns == len(points)
    assert np.all(intervals.end_ns[:-1] < intervals.start_ns[1:])


@given(pairs, pairs)
def test_overlap_and_union(first: list[tuple[int, int]], second: list[tuple[int, int]]) -> None:
    a, points_a = made(first)
    b, points_b = made(second)
    assert a.overlap_ns(b) == b.overlap_ns(a) == len(points_a & points_b)
    assert a.union(b).total_ns == len(points_a | points_b)


@given(pairs, st.lists(st.integers(0, 90), max_size=10))
def test_covered_before_and_count(items: list[tuple[int, int]], times: list[int]) -> None:
    intervals, points = made(items)
    covered = intervals.covered_before(np.array(times, dtype=np.int64))
    assert covered.tolist() == [sum(p < t for p in points) for t in times]
    assert intervals.count_of(np.array(sorted(times), dtype=np.int64)) == sum(t in points for t in times)
