"""Events of tracks placed in lanes: one per depth of nesting, and further ones where events of a depth overlap."""

from __future__ import annotations

import heapq
from itertools import pairwise

import numpy as np
import numpy.typing as npt

MAX_OVERLAP = 8
"""Lanes a depth may be split into; what overlaps even more shares the last one, cut at the next start."""

Ints = npt.NDArray[np.int64]


def lane_order(
    track: npt.NDArray[np.int32], start: Ints, duration: Ints, event: Ints, parent: Ints
) -> tuple[Ints, list[tuple[int, int, int, int]]]:
    """The order that puts every lane's events together by start time, and the lanes in it.

    Args:
        track, start, duration, event: the events' columns, in any order.
        parent: event id of the enclosing event on the same track, -1 for none.

    Returns:
        The order (indices of events) and the lanes as (track_id, depth, first, last): order[first:last] is a lane.
    """
    depth = nesting(event, parent)
    order = np.lexsort((event, start, depth, track))
    lanes: list[tuple[int, int, int, int]] = []
    if not len(order):
        return order, lanes
    changes = np.flatnonzero((np.diff(track[order]) != 0) | (np.diff(depth[order]) != 0)) + 1
    bounds = [0, *changes.tolist(), len(order)]
    pieces: list[Ints] = []
    position = 0
    for first, last in pairwise(bounds):
        part = order[first:last]
        where = int(track[part[0]]), int(depth[part[0]])
        for group in _without_overlap(part, start, duration):
            pieces.append(group)
            lanes.append((*where, position, position + len(group)))
            position += len(group)
    return np.concatenate(pieces), lanes


def nesting(event: Ints, parent: Ints) -> npt.NDArray[np.int32]:
    """How many events enclose each one; a parent that is not there counts as none."""
    depth = np.zeros(len(event), np.int32)
    if not len(event):
        return depth
    by_id = np.argsort(event, kind="stable")
    ids = event[by_id]
    found = np.minimum(np.searchsorted(ids, parent), len(ids) - 1)
    up = np.where((parent >= 0) & (ids[found] == parent), by_id[found], -1)
    active = np.flatnonzero(up >= 0)
    at = up[active]
    for _ in range(4096):  # deeper nesting, or a circle, ends here
        if not len(active):
            break
        depth[active] += 1
        at = up[at]
        alive = at >= 0
        active, at = active[alive], at[alive]
    return depth


def _without_overlap(part: Ints, start: Ints, duration: Ints) -> list[Ints]:
    begin = start[part]
    end = begin + duration[part]
    if len(part) < 2 or not (begin[1:] < np.maximum.accumulate(end)[:-1]).any():
        return [part]
    lanes: list[list[int]] = []
    free: list[tuple[int, int]] = []
    for index, (first, last) in enumerate(zip(begin.tolist(), end.tolist())):
        if free and (free[0][0] <= first or len(lanes) >= MAX_OVERLAP):
            _, lane = heapq.heappop(free)
        else:
            lane = len(lanes)
            lanes.append([])
        lanes[lane].append(index)
        heapq.heappush(free, (last, lane))
    return [part[np.array(lane)] for lane in lanes]
