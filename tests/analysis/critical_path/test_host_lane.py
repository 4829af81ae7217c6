"""The host lane against a slow and obvious reference."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from explorer.analysis.critical_path.host_lane import Pieces, fill, innermost, whole


def nested(
    draw: st.DrawFn, begin: int, end: int, depth: int, parent: int, out: list[tuple[int, int, int]]
) -> None:
    """A random forest of properly nested intervals."""
    cuts = sorted(draw(st.lists(st.integers(begin, end), max_size=6)))
    for left, right in zip(cuts[::2], cuts[1::2]):
        out.append((left, right, parent))
        if depth and right - left > 1:
            nested(draw, left, right, depth - 1, len(out) - 1, out)


@st.composite
def forests(draw: st.DrawFn) -> list[tuple[int, int, int]]:
    out: list[tuple[int, int, int]] = []
    nested(draw, 0, 60, 3, -1, out)
    return out


def arrays(rows: list[tuple[int, int, int]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    table = np.array(rows, np.int64).reshape(-1, 3)
    return table[:, 0], table[:, 1], table[:, 2]


@given(forests())
def test_each_moment_belongs_to_the_innermost_event(rows: list[tuple[int, int, int]]) -> None:
    pieces = innermost(*arrays(rows))
    truth: dict[int, int] = {}
    for moment in range(61):
        holding = [i for i, (s, e, _) in enumerate(rows) if s <= moment < e]
        if holding:
            # nested, later in the list = deeper
            truth[moment] = max(holding)
    seen: dict[int, int] = {}
    for s, e, event in zip(pieces.start, pieces.end, pieces.event):
        for moment in range(int(s), int(e)):
            assert moment not in seen
            seen[moment] = int(event)
    assert seen == truth


@given(forests(), forests(), st.sets(st.integers(0, 40)))
def test_fill_shows_the_other_lane_only_where_the_first_rests(
    first: list[tuple[int, int, int]], second: list[tuple[int, int, int]], passive_events: set[int]
) -> None:
    lane, other = innermost(*arrays(first)), innermost(*arrays(second))
    other = Pieces(other.start, other.end, other.event + 1000)
    passive = np.isin(lane.event, list(passive_events))
    out = fill(lane, other, passive)

    def holder(pieces: Pieces, moment: int) -> int | None:
        for s, e, event in zip(pieces.start, pieces.end, pieces.event):
            if s <= moment < e:
                return int(event)
        return None

    for moment in range(61):
        own, others = holder(lane, moment), holder(other, moment)
        want = (
            own if own is not None and own not in passive_events else (others if others is not None else own)
        )
        assert holder(out, moment) == want


@given(forests(), st.integers(0, 60), st.integers(0, 60))
def test_whole_covers_the_window_exactly(rows: list[tuple[int, int, int]], a: int, b: int) -> None:
    begin, finish = min(a, b), max(a, b)
    pieces = whole(innermost(*arrays(rows)), begin, finish)
    assert int((pieces.end - pieces.start).sum()) == finish - begin
    assert (pieces.end[:-1] == pieces.start[1:]).all()
    assert (pieces.end > pieces.start).all()
