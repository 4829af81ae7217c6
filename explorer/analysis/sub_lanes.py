"""Lanes in which events only nest: viewers that draw nested slices lose those that overlap without nesting."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]


def sub_lanes(start: Ints, duration: Ints) -> Ints:
    """For events of one track, in order of start and with longer ones first, the first lane in which each one nests.

    Lane 0 takes every event that lies inside the open ones of the lane or behind them; an event that overlaps another's end
    goes to the next lane where it fits.
    """
    count = len(start)
    lanes = np.zeros(count, np.int64)
    end = start + duration
    if count < 2 or not np.any(start[1:] < np.maximum.accumulate(end)[:-1]):
        return lanes
    open_ends: list[list[int]] = []
    for place, (first, last) in enumerate(zip(start.tolist(), end.tolist())):
        lane = next((n for n, stack in enumerate(open_ends) if _fits(stack, first, last)), len(open_ends))
        if lane == len(open_ends):
            open_ends.append([])
        open_ends[lane].append(last)
        lanes[place] = lane
    return lanes


def _fits(stack: list[int], first: int, last: int) -> bool:
    """Whether an event lies behind the open ones or inside the innermost of them. Ended ones are taken off."""
    while stack and stack[-1] <= first:
        stack.pop()
    return not stack or last <= stack[-1]
