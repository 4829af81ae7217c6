"""The events of a rank as arrays: their order, references between them, and categories that nobody listed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from explorer.analysis.critical_path.host_lane import innermost
from explorer.analysis.critical_path.rank_events import by_start, load, row_numbers
from explorer.analysis.engine import Engine
from explorer.store.reader import RunReader
from explorer.store.writer import RunWriter
from tests.analysis.critical_path.test_walk import TRACKS, event


def ints(values: list[int]) -> np.ndarray:
    return np.array(values, np.int64)


def test_events_in_order_are_left_as_they_are() -> None:
    assert by_start(ints([0, 0, 5]), ints([9, 4, 6]), ints([1, 2, 3])) is None


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=30))
def test_order_is_by_start_then_the_longest_then_by_id(spans: list[tuple[int, int]]) -> None:
    start = ints([span[0] for span in spans])
    end = start + ints([span[1] for span in spans])
    event_id = np.arange(len(spans))[::-1] + 1
    order = by_start(start, end, event_id)
    found = range(len(spans)) if order is None else order.tolist()
    assert list(found) == sorted(range(len(spans)), key=lambda i: (start[i], -end[i], event_id[i]))


@given(
    st.lists(st.one_of(st.integers(0, 20), st.just(10**12))),
    st.lists(st.sampled_from([-1, 0, 3, 20, 10**12])),
)
def test_row_numbers_of_near_and_far_ids(ids: list[int], wanted: list[int]) -> None:
    expected = [ids.index(one) if one in ids else -1 for one in wanted]
    assert row_numbers(ints(ids), ints(wanted)).tolist() == expected


@given(st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)), max_size=12), st.randoms())
def test_pieces_do_not_depend_on_the_order_of_events_that_do_not_nest(
    spans: list[tuple[int, int]], chance: object
) -> None:
    spans = sorted(((a, a + length) for a, length in spans), key=lambda span: (span[0], -span[1]))
    # Kept apart: each begins where the one before ended.
    flat, reached = [], 0
    for begin, end in spans:
        flat.append((reached + begin, reached + end))
        reached += end
    order = list(range(len(flat)))
    chance.shuffle(order)  # type: ignore[attr-defined]
    starts, ends = ints([span[0] for span in flat]), ints([span[1] for span in flat])
    parents = np.full(len(flat), -1, np.int64)
    sorted_pieces = innermost(starts, ends, parents)
    mixed = innermost(starts[order], ends[order], parents)
    assert sorted_pieces.start.tolist() == mixed.start.tolist()
    assert sorted_pieces.end.tolist() == mixed.end.tolist()
    assert sorted_pieces.event.tolist() == [order[i] for i in mixed.event.tolist()]


def test_categories_that_this_version_does_not_know_keep_their_names(tmp_path: Path) -> None:
    with RunWriter(tmp_path / "run") as writer:
        writer.write("tracks", TRACKS)
        writer.write("events", [event(1, 1, "op", 0, 10), event(2, 1, "from_tomorrow", 20, 25)])
    events = load(Engine(RunReader(writer.directory), threads=1), 0)
    assert events is not None
    assert events.category.tolist() == ["op", "from_tomorrow"]
