"""Which host event enqueued a device event, and which framework op is responsible for it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from explorer.collectors.kineto.light import NONE

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


def match_by_number(wanted: Ints, wanted_start: Ints, offered: Ints, offered_start: Ints) -> Ints:
    """For each wanted number the position of the offered event with the same number; -1 where there is none.

    Numbers can repeat (several launches under one number): then the last one that started no later is taken, else the first.
    """
    result = np.full(len(wanted), -1, np.int64)
    if not len(wanted) or not len(offered):
        return result
    order = np.lexsort((offered_start, offered))
    numbers, starts = offered[order], offered_start[order]
    low = np.searchsorted(numbers, wanted, "left")
    high = np.searchsorted(numbers, wanted, "right")
    found = (high > low) & (wanted != NONE)
    choice = low.copy()
    several = found & (high - low > 1)
    if several.any():
        left, right = low[several], high[several]
        instant = wanted_start[several]
        # Binary search inside each group for the last start that is no later.
        lower, upper = left.copy(), right.copy()
        while (open_ := lower < upper).any():
            middle = (lower + upper) // 2
            earlier = open_ & (starts[np.minimum(middle, len(starts) - 1)] <= instant)
            lower = np.where(earlier, middle + 1, lower)
            upper = np.where(open_ & ~earlier, middle, upper)
        choice[several] = np.maximum(lower - 1, left)
    result[found] = order[choice[found]]
    return result
