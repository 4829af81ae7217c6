"""Events of tracks placed in lanes: one per depth of nesting, further down where events overlap without nesting."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import numpy.typing as npt

MAX_LANES = 256
"""Lanes of one track; what would need more shares the last one."""

Ints = npt.NDArray[np.int64]


def lane_order(
    track: npt.NDArray[np.int32], start: Ints, duration: Ints, event: Ints, parent: Ints
) -> tuple[Ints, list[tuple[int, int, int, int]]]:
    """The order that puts every lane's events together by start time, and the lanes in it.

    Args:
        track, start, duration, event: the events' columns, in any order.
        parent: event id of the enclosing event on the same track, -1 for none.

    Returns:
        The order (indices of events) and the lanes as (track_id, lane, first, last): order[first:last] is a lane.
    """
    up = parents(event, parent)
    lane = nesting(up)
    order = np.lexsort((event, start, lane, track))
    for number in overlapping_tracks(track, start, duration, lane, order).tolist():
        own = np.flatnonzero(track == number)
        lane[own] = packed(own, start, duration, event, up)
        order = np.lexsort((event, start, lane, track))
    if not len(order):
        return order, []
    changes = np.flatnonzero((np.diff(track[order]) != 0) | (np.diff(lane[order]) != 0)) + 1
    bounds = [0, *changes.tolist(), len(order)]
    lanes = [
        (int(track[order[first]]), int(lane[order[first]]), first, last) for first, last in pairwise(bounds)
    ]
    return order, lanes


def parents(event: Ints, parent: Ints) -> Ints:
    """The index of each event's parent, -1 where it has none or its parent is not among the events."""
    if not len(event):
        return np.empty(0, np.int64)
    by_id = np.argsort(event, kind="stable")
    ids = event[by_id]
    found = np.minimum(np.searchsorted(ids, parent), len(ids) - 1)
    return np.where((parent >= 0) & (ids[found] == parent), by_id[found], -1)


def nesting(up: Ints) -> npt.NDArray[np.int32]:
    """How many events enclose each one."""
    depth = np.zeros(len(up), np.int32)
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


def overlapping_tracks(
    track: npt.NDArray[np.int32], start: Ints, duration: Ints, lane: npt.NDArray[np.int32], order: Ints
) -> npt.NDArray[np.int32]:
    """Tracks in which two events of one depth overlap. Neighbours in order are enough to find one."""
    if len(order) < 2:
        return np.empty(0, np.int32)
    before, after = order[:-1], order[1:]
    same = (track[before] == track[after]) & (lane[before] == lane[after])
    return np.unique(track[after[same & (start[after] < start[before] + duration[before])]])


def packed(own: Ints, start: Ints, duration: Ints, event: Ints, up: Ints) -> npt.NDArray[np.int32]:
    """Lanes of one track's events: each in the first lane below its parent that is free when it starts."""
    order = own[np.lexsort((event[own], -duration[own], start[own]))]
    place = {index: at for at, index in enumerate(own.tolist())}
    lanes = np.zeros(len(own), np.int32)
    ends: list[int] = []
    rows = zip(
        order.tolist(), start[order].tolist(), duration[order].tolist(), up[order].tolist(), strict=True
    )
    for index, begin, length, above in rows:
        at = place.get(above)
        lane = int(lanes[at]) + 1 if at is not None else 0
        while lane < len(ends) and ends[lane] > begin:
            lane += 1
        lane = min(lane, MAX_LANES - 1)
        while len(ends) <= lane:
            ends.append(0)
        ends[lane] = begin + length
        lanes[place[index]] = lane
    return lanes
