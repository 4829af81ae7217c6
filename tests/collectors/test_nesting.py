"""Parents and self time against a plain quadratic definition."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from explorer.collectors.nesting import nearest, nest

events = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 30), st.integers(0, 12)), max_size=30)


def columns(rows):
    return tuple(np.array([row[place] for row in rows], np.int64) for place in range(3))


def plain(rows):
    """The definition: the last started, shortest event of the track that covers the whole interval and began before it."""
    order = sorted(range(len(rows)), key=lambda i: (rows[i][0], rows[i][1], -rows[i][2], i))
    rank = {event: place for place, event in enumerate(order)}
    parents, own = [], []
    for i, (track, start, duration) in enumerate(rows):
        around = [
            j
            for j, (other, begin, length) in enumerate(rows)
            if other == track
            and rank[j] < rank[i]
            and begin + length > start
            and begin + length >= start + duration
        ]
        parents.append(max(around, key=lambda j: rank[j]) if around else -1)
    for i, (_, _start, duration) in enumerate(rows):
        covered = set()
        for j, parent in enumerate(parents):
            if parent == i:
                covered |= set(range(rows[j][1], rows[j][1] + rows[j][2]))
        own.append(duration - len(covered))
    return parents, own


@settings(max_examples=300)
@given(events)
def test_parents_and_self_time_match_the_definition(rows):
    parent, own = nest(*columns(rows))
    parents, selfs = plain(rows)
    assert parent.tolist() == parents
    assert own.tolist() == selfs


def test_equal_intervals_nest_in_the_given_order():
    parent, own = nest(*columns([(0, 5, 10), (0, 5, 10), (0, 5, 10)]))
    assert parent.tolist() == [-1, 0, 1]
    assert own.tolist() == [0, 0, 10]


@settings(max_examples=200)
@given(events, st.data())
def test_nearest_follows_parents(rows, data):
    parent, _ = nest(*columns(rows))
    marked = np.array(data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows))), bool)
    found = nearest(marked, parent)
    for place in range(len(rows)):
        wanted = place
        while wanted >= 0 and not marked[wanted]:
            wanted = int(parent[wanted])
        assert found[place] == wanted
