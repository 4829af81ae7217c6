"""What the host side of one rank was doing at every moment, as one lane of pieces.

The lane follows the thread that drives the steps; while that thread sits idle inside `backward()` on an accelerator,
the autograd thread works for it, and the lane shows that thread's pieces instead.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Pieces:
    """Consecutive pieces of time, sorted by start, never overlapping. `event` is an index into the event arrays or -1."""

    start: Ints
    end: Ints
    event: Ints

    def __len__(self) -> int:
        return len(self.start)


def innermost(start: Ints, end: Ints, parent: Ints) -> Pieces:
    """Cut one track into pieces, each with its innermost event.

    Rows come in an order in which a parent stands before its children.

    Args:
        start, end: event times in ns.
        parent: index of the enclosing event on the same track, -1 at the top.

    Returns:
        Pieces covering the union of the events; idle time between them has no piece.
    """
    index = np.arange(len(start), dtype=np.int64)
    # At a start the event itself becomes innermost, at its end its parent does. At one time: ends before starts;
    # of several ends the outermost last; of several starts the longest first. Empty events never become innermost.
    real = end > start
    if not real.any():
        empty = np.zeros(0, np.int64)
        return Pieces(empty, empty, empty)
    index, start_, end_, parent_ = index[real], start[real], end[real], parent[real]
    time, what = _bounds(start_, end_, parent_, index)
    last = np.append(time[1:] != time[:-1], True)
    time, what = time[last], what[last]
    piece_end = np.append(time[1:], time[-1:])
    keep = (what >= 0) & (piece_end > time)
    return Pieces(time[keep], piece_end[keep], what[keep])


def _bounds(start: Ints, end: Ints, parent: Ints, index: Ints) -> tuple[Ints, Ints]:
    """Starts and ends in the order described in `innermost`, each with the event that is innermost from then on."""
    if _longest_first(start, end):
        # Starts stand in order already, and ends of one time the other way round: two sorted rows are merged.
        by_end = len(end) - 1 - np.argsort(end[::-1], kind="stable")
        ends = end[by_end]
        place = np.arange(len(end)) + np.searchsorted(start, ends, "left")
        time, what = np.empty(2 * len(end), np.int64), np.empty(2 * len(end), np.int64)
        time[place], what[place] = ends, parent[by_end]
        rest = np.ones(len(time), np.bool_)
        rest[place] = False
        time[rest], what[rest] = start, index
        return time, what
    time = np.concatenate([end, start])
    is_start = np.concatenate([np.zeros(len(index), np.int8), np.ones(len(index), np.int8)])
    other = np.concatenate([-start, -end])
    tie = np.concatenate([-index, index])
    order = np.lexsort((tie, other, is_start, time))
    return time[order], np.concatenate([parent, index])[order]


def _longest_first(start: Ints, end: Ints) -> bool:
    """Whether events come by start, of one start the longest first."""
    return bool(((start[1:] > start[:-1]) | ((start[1:] == start[:-1]) & (end[1:] <= end[:-1]))).all())


def fill(lane: Pieces, other: Pieces, passive: NDArray[np.bool_]) -> Pieces:
    """Show `other`'s pieces wherever `lane` has none or only a passive one (`passive` is one flag per lane piece)."""
    if not len(other):
        return lane
    active = Pieces(lane.start[~passive], lane.end[~passive], lane.event[~passive])
    with_other = _underlay(active, other)
    rest = Pieces(lane.start[passive], lane.end[passive], lane.event[passive])
    return _underlay(with_other, rest)


def _underlay(top: Pieces, below: Pieces) -> Pieces:
    """Pieces of `top`, and those of `below` cut to the time that `top` leaves free."""
    if not len(top):
        return below
    if not len(below):
        return top
    edges = distinct(top.start, top.end, below.start, below.end)
    start, end = edges[:-1], edges[1:]
    event = at(top, start)
    from_below = at(below, start)
    event = np.where(event == NOTHING, from_below, event)
    keep = event != NOTHING
    return merged(Pieces(start[keep], end[keep], event[keep]))


def distinct(*times: Ints) -> Ints:
    """All times in order, each once. (Most come sorted, which a stable sort only merges; numpy's unique and its usual sort are
    many times slower on them.)"""
    found = np.sort(np.concatenate(times), kind="stable")
    return found[np.append(True, found[1:] != found[:-1])] if len(found) else found


NOTHING = -2
"""No piece at that time."""


def at(pieces: Pieces, times: Ints) -> Ints:
    """The event of the piece that holds each time; NOTHING where there is none."""
    if not len(pieces):
        return np.full(len(times), NOTHING, np.int64)
    slot = np.searchsorted(pieces.start, times, "right") - 1
    inside = (slot >= 0) & (times < pieces.end[np.maximum(slot, 0)])
    return np.where(inside, pieces.event[np.maximum(slot, 0)], NOTHING)


def merged(pieces: Pieces) -> Pieces:
    """Join touching pieces of the same event."""
    if len(pieces) < 2:
        return pieces
    new = np.append(True, (pieces.event[1:] != pieces.event[:-1]) | (pieces.start[1:] != pieces.end[:-1]))
    first = np.flatnonzero(new)
    last = np.append(first[1:] - 1, len(pieces) - 1)
    return Pieces(pieces.start[first], pieces.end[last], pieces.event[first])


def whole(pieces: Pieces, begin: int, finish: int) -> Pieces:
    """The lane cut to [begin, finish) with its holes filled by pieces without event (-1)."""
    inside = np.minimum(pieces.end, finish) > np.maximum(pieces.start, begin)
    start = np.maximum(pieces.start[inside], begin)
    end = np.minimum(pieces.end[inside], finish)
    event = pieces.event[inside]
    # Before each piece and after the last one there may be a hole: they alternate.
    all_start, all_end, all_event = (np.empty(2 * len(start) + 1, np.int64) for _ in range(3))
    all_start[0], all_start[1::2], all_start[2::2] = begin, start, end
    all_end[0::2], all_end[1::2] = np.append(start, finish), end
    all_event[0::2], all_event[1::2] = -1, event
    real = all_end > all_start
    return Pieces(all_start[real], all_end[real], all_event[real])
