"""Steps that several threads mark, that nest, that overlap."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from explorer.collectors.step_intervals import settled


def test_threads_that_mark_the_same_step():
    assert settled([(3, 10, 20), (3, 12, 22), (4, 22, 30), (4, 25, 33)]) == [(3, 10, 22), (4, 22, 33)]


def test_ranges_inside_a_step_and_overlapping_ones():
    assert settled([(1, 0, 100), (7, 10, 20), (2, 90, 150)]) == [(1, 0, 100), (2, 100, 150)]


def test_a_number_that_comes_again_later_is_another_step():
    assert settled([(1, 0, 10), (1, 50, 60)]) == [(1, 0, 10), (1, 50, 60)]


@settings(max_examples=200)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 50), st.integers(0, 20)), max_size=20))
def test_never_over_one_another_and_never_outside(rows):
    steps = [(number, start, start + length) for number, start, length in rows]
    found = settled(steps)
    for (_, _, end), (_, start, _) in pairwise(found):
        assert end <= start
    covered = {t for _, start, end in steps for t in range(start, end)}
    assert {t for _, start, end in found for t in range(start, end)} == covered
