"""Python time of library modules in what a thread was executing: the line `model(x)` runs Python that is not the program's."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

I64 = npt.NDArray[np.int64]


def module_python_ns(state_start: I64, state_end: I64, calls: tuple[I64, I64], ops: tuple[I64, I64]) -> I64:
    """Per state, its time outside ops and inside calls of nn.Modules that show no line of their own, in ns.

    Args:
        state_start, state_end: states of one thread, in time order and disjoint.
        calls: times at which a module's call began or ended, ascending, and how many calls were open from then on.
        ops: beginnings and ends of the thread's ops, nested or not.

    A module whose forward is recorded has states of its own. What a state holds of open calls beyond the fewest it ever
    has open is therefore Python of modules that are not recorded: those of libraries, and the machinery around each call.
    """
    times, open_calls = calls
    if not len(times) or not len(state_start):
        return np.zeros(len(state_start), np.int64)
    op_start, op_end = _disjoint(*ops)
    edges = np.unique(np.concatenate([state_start, state_end, times]))
    left = edges[:-1]
    state = np.searchsorted(state_start, left, "right") - 1
    inside = (state >= 0) & (left < state_end[np.maximum(state, 0)])
    state, left, right = state[inside], left[inside], edges[1:][inside]
    at = np.searchsorted(times, left, "right") - 1
    depth = np.where(at >= 0, open_calls[np.maximum(at, 0)], 0)
    fewest = np.full(len(state_start), np.iinfo(np.int64).max)
    np.minimum.at(fewest, state, depth)
    own = right - left - (_covered(op_start, op_end, right) - _covered(op_start, op_end, left))
    result = np.zeros(len(state_start), np.int64)
    np.add.at(result, state, np.where(depth > fewest[state], own, 0))
    return result


def _disjoint(start: I64, end: I64) -> tuple[I64, I64]:
    """The union of intervals, as disjoint ones in time order."""
    if not len(start):
        return start, end
    order = np.argsort(start, kind="stable")
    start, end = start[order], np.maximum.accumulate(end[order])
    first = np.append(True, start[1:] > end[:-1])
    return start[first], end[np.append(first[1:], True)]


def _covered(start: I64, end: I64, times: I64) -> I64:
    """How much of disjoint intervals lies before each time."""
    if not len(start):
        return np.zeros(len(times), np.int64)
    before = np.searchsorted(start, times, "right")
    whole = np.append(0, np.cumsum(end - start))
    return np.asarray(
        whole[before] - np.where(before > 0, np.maximum(0, end[before - 1] - times), 0), np.int64
    )
