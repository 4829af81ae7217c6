"""Which event encloses which on one track, and each event's own time."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

I64 = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


def parents_of(tracks: I64, starts: I64, ends: I64) -> I64:
    """Index of the innermost event that encloses each one on the same track, -1 where none does.

    Rows must be sorted by (track, start, -end). An event that outlives the one it starts in (asynchronous ranges) is no
    child of it. Vectorised per nesting depth; tracks with such overlaps go through a stack.
    """
    count = len(starts)
    parents = np.full(count, -1, dtype=np.int64)
    if count == 0:
        return parents
    bounds = np.flatnonzero(np.diff(tracks)) + 1
    for low, high in zip(np.r_[0, bounds], np.r_[bounds, count]):
        _one_track(starts[low:high], ends[low:high], parents[low:high])
        own = parents[low:high]
        own[own >= 0] += low
    return parents


def _one_track(starts: I64, ends: I64, parents: I64) -> None:
    count = len(starts)
    order = np.arange(count)
    # Twice the time, so that an event without length still is open at its own start.
    begin = (starts - starts[0]) * 2
    finish = (ends - starts[0]) * 2
    finish = np.where(finish == begin, finish + 1, finish)
    # Open events at each start: those begun before it less those ended by then.
    depths = order - np.searchsorted(np.sort(finish), begin, "right")
    candidate = np.full(count, -1, dtype=np.int64)
    for depth in range(1, int(depths.max()) + 1):
        last = np.maximum.accumulate(np.where(depths == depth - 1, order, -1))
        here = depths == depth
        candidate[here] = last[here]
    inside = candidate >= 0
    proper = bool(np.all(inside == (depths > 0))) and bool(
        np.all(finish[inside] <= finish[candidate[inside]])
    )
    if proper:
        parents[:] = candidate
    else:
        _with_stack(begin, finish, parents)


def _with_stack(begin: I64, finish: I64, parents: I64) -> None:
    open_events: list[tuple[int, int]] = []
    for index, (start, end) in enumerate(zip(begin.tolist(), finish.tolist())):
        open_events = [item for item in open_events if item[0] > start]
        for stop, enclosing in reversed(open_events):
            if end <= stop:
                parents[index] = enclosing
                break
        open_events.append((end, index))


def self_times(starts: I64, durations: I64, parents: I64) -> I64:
    """Duration minus what the direct children cover; children that overlap each other (asynchronous ranges) cover that
    time once. Rows in the order of `parents_of`."""
    inside = np.flatnonzero(parents >= 0)
    covered = np.bincount(
        parents[inside], weights=durations[inside].astype(np.float64), minlength=len(durations)
    ).astype(np.int64)
    siblings = inside[np.argsort(parents[inside], kind="stable")]
    first, second = siblings[:-1], siblings[1:]
    overlap = (parents[first] == parents[second]) & (starts[second] < starts[first] + durations[first])
    if np.any(overlap):
        twice = set(parents[second[overlap]].tolist())
        union = dict.fromkeys(twice, 0)
        reached: dict[int, int] = {}
        for row in siblings[np.isin(parents[siblings], list(twice))].tolist():
            above, start = int(parents[row]), int(starts[row])
            end = start + int(durations[row])
            before = max(reached.get(above, start), start)
            union[above] += max(0, end - before)
            reached[above] = max(before, end)
        covered[list(union)] = list(union.values())
    return durations - covered


def enclosing_ops(parents: I64, depths: list[npt.NDArray[np.intp]], is_op: Bools) -> I64:
    """The innermost op around each row, -1 where there is none. Ranges between them (torch puts one around each compiled
    graph it calls) are passed over."""
    enclosing = np.full(len(parents), -1, dtype=np.int64)
    for rows in depths[1:]:
        above = parents[rows]
        enclosing[rows] = np.where(is_op[above], above, enclosing[above])
    return enclosing
