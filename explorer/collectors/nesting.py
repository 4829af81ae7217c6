"""Which event encloses which on one track, and how much of each is its own."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Int64s = npt.NDArray[np.int64]


def nest(track: Int64s, start: Int64s, duration: Int64s) -> tuple[Int64s, Int64s]:
    """Parent index (-1: none) and self time of every event.

    An event's parent is the shortest earlier event of its track that covers it whole; of equal intervals the first one
    given is outside. Events that only overlap are siblings. Self time is the duration minus the union of the events
    directly inside.
    """
    count = len(start)
    parent = np.full(count, -1, np.int64)
    own = duration.astype(np.int64, copy=True)
    order = np.lexsort((np.arange(count), -duration, start, track))
    if not count:
        return parent, own
    sorted_track, begin = track[order], start[order]
    end = begin + duration[order]
    # A track whose events follow each other has no parents: found without a loop. The running maximum of ends is
    # taken per track.
    bounds = np.flatnonzero(np.diff(sorted_track)) + 1
    for low, high in zip(np.concatenate(([0], bounds)), np.concatenate((bounds, [count]))):
        reached = np.maximum.accumulate(end[low:high])
        if not np.any(begin[low + 1 : high] < reached[:-1]):
            continue
        _nest_track(order[low:high].tolist(), begin[low:high].tolist(), end[low:high].tolist(), parent, own)
    return parent, own


def _nest_track(ids: list[int], begin: list[int], end: list[int], parent: Int64s, own: Int64s) -> None:
    open_ends: list[int] = []
    open_ids: list[int] = []
    covered: list[int] = []
    parents: list[int] = []
    inside: dict[int, int] = {}
    for number, first, last in zip(ids, begin, end):
        while open_ends and open_ends[-1] <= first:
            open_ends.pop()
            open_ids.pop()
            covered.pop()
        found = -1
        for place in range(len(open_ends) - 1, -1, -1):
            if open_ends[place] >= last:
                found = open_ids[place]
                seen = covered[place]
                if last > seen:
                    inside[found] = inside.get(found, 0) + last - max(first, seen)
                    covered[place] = last
                break
        parents.append(found)
        open_ends.append(last)
        open_ids.append(number)
        covered.append(first)
    parent[ids] = parents
    if inside:
        keys = np.fromiter(inside.keys(), np.int64, len(inside))
        own[keys] -= np.fromiter(inside.values(), np.int64, len(inside))


def nearest(marked: npt.NDArray[np.bool_], parent: Int64s) -> Int64s:
    """For every event the nearest marked one among itself and the events around it; -1 where there is none."""
    found = np.where(marked, np.arange(len(parent)), parent)
    while True:
        valid = found >= 0
        unresolved = valid.copy()
        unresolved[valid] = ~marked[found[valid]]
        if not unresolved.any():
            return found
        found[unresolved] = parent[found[unresolved]]
