"""Which event encloses which on one track, and the time an event spends outside the events it encloses. Vectorised."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from explorer.collectors.kineto.compiled import compiled_sweep

Ints = npt.NDArray[np.int64]


Codes = npt.NDArray[np.int32]
BLOCK_EVENTS = 1_000_000
"""Self times are computed for about so many events at once, which bounds the memory they take."""


@dataclass
class Nest:
    """`parent` is the position of the innermost enclosing event of the same track, -1 where there is none; `own` the
    duration minus the union of the directly enclosed events; `order` lists events by track, every enclosing event
    before what it encloses."""

    parent: Codes
    own: Ints
    order: Codes


def nest(track: Codes, start: Ints, duration: Ints, tie: npt.NDArray[np.int8], threads: int = 1) -> Nest:
    """Nesting of all events, track by track, as many tracks at once as there are threads. Of events with equal times the one
    with the lower `tie` encloses the other."""
    count = len(track)
    result = Nest(np.full(count, -1, np.int32), duration.copy(), np.empty(count, np.int32))
    if not count:
        return result
    # Numbers of 16 bits are sorted by counting.
    few = track.astype(np.int16) if track.max() < 1 << 15 else track
    by_track = np.argsort(few, kind="stable").astype(np.int32)
    del few
    ordered = track[by_track]
    bounds = [0, *(np.flatnonzero(ordered[1:] != ordered[:-1]) + 1).tolist(), count]
    del ordered

    compiled = compiled_sweep()

    def one(low: int, high: int) -> None:
        members = by_track[low:high]
        begin = start[members]
        end = begin + duration[members]
        order = sweep_order(begin, end, tie[members])
        if order is not None:
            begin, end, members = begin[order], end[order], members[order]
        if compiled is None:
            above = parents(begin, end)
            own = self_times(begin, end, above)
        else:
            above, own = np.empty(len(begin), np.int32), np.empty(len(begin), np.int64)
            compiled.nest(begin, end, above, own)
        inside = np.flatnonzero(above >= 0)
        result.order[low:high] = members
        result.parent[members[inside]] = members[above[inside]]
        result.own[members] = own

    # The longest tracks first, so that the threads end together.
    tracks = sorted(pairwise(bounds), key=lambda track: track[0] - track[1])
    if threads < 2 or len(tracks) < 2:
        for track_ in tracks:
            one(*track_)
    else:
        with ThreadPoolExecutor(threads) as pool:
            # In copies of this context: where numpy's arrays lie is a part of it.
            for done in [pool.submit(partial(copy_context().run, one, *track_)) for track_ in tracks]:
                done.result()
    return result


def sweep_order(begin: Ints, end: Ints, tie: npt.NDArray[np.int8]) -> npt.NDArray[np.intp] | None:
    """Positions by start, longer first, then by `tie`, then as they are; None where they lie so already.

    Few events start together: only these are ordered by more than their start.
    """
    rising = begin[1:] > begin[:-1]
    if rising.all():
        return None
    order = np.argsort(begin, kind="stable")
    ordered = begin[order]
    same = np.zeros(len(begin) + 1, bool)
    np.equal(ordered[1:], ordered[:-1], out=same[1:-1])
    slots = np.flatnonzero(same[1:] | same[:-1])
    if len(slots):
        tied = order[slots]
        order[slots] = tied[np.lexsort((tie[tied], -end[tied], begin[tied]))]
    return order


def parents(start: Ints, end: Ints) -> Codes:
    """Index of the innermost event that encloses each event of one track, given in sweep order; -1 where there is none.

    An event encloses another when it starts no later and ends no earlier; what merely overlaps does not count. An event
    of no length at another's end lies outside it. In sweep order (by start, longer first) the innermost encloser is the
    nearest earlier event that ends no earlier, found by jumping over events already known to end too early, all events at
    once: each round at least doubles the jumps, so there are about log2(n) of them.
    """
    count = len(start)
    # An event of no length needs an encloser that ends strictly later.
    need = end + (end == start)
    jump = np.arange(-1, count - 1, dtype=np.int32)
    # `jump[i]` is never before the encloser: everything between it and i ends before i does.
    active = np.flatnonzero(end[jump[1:]] < need[1:]).astype(np.int32) + np.int32(1)
    while len(active):
        further = jump[jump[active]]
        jump[active] = further
        active = active[further >= 0]
        active = active[end[jump[active]] < need[active]]
    return jump


def self_times(start: Ints, end: Ints, parent: Codes) -> Ints:
    """Duration minus the union of the directly enclosed events, for one track in sweep order. Exact integers."""
    own = end - start
    roots = np.flatnonzero(parent < 0)
    low = 0
    while low < len(own):
        # Blocks end between two trees, so that no event is in another block than what it encloses.
        place = np.searchsorted(roots, low + BLOCK_EVENTS)
        high = int(roots[place]) if place < len(roots) else len(own)
        _subtract(own, start, end, parent, low, high)
        low = high
    return own


def _subtract(own: Ints, start: Ints, end: Ints, parent: Codes, low: int, high: int) -> None:
    nested = np.flatnonzero(parent[low:high] >= 0) + low
    if not len(nested):
        return
    nested = nested[np.argsort(parent[nested], kind="stable")]
    owner, begin, finish = parent[nested], start[nested], end[nested]
    first = np.empty(len(nested), bool)
    first[0] = True
    np.not_equal(owner[1:], owner[:-1], out=first[1:])
    groups = np.flatnonzero(first)
    covered = np.add.reduceat(finish - begin, groups)
    overlap = np.zeros(len(nested), bool)
    overlap[1:] = ~first[1:] & (begin[1:] < finish[:-1])
    if overlap.any():
        # Of overlapping children only the union counts.
        number = np.cumsum(first) - 1
        for group in np.unique(number[overlap]):
            a = groups[group]
            b = groups[group + 1] if group + 1 < len(groups) else len(nested)
            reached = np.maximum.accumulate(finish[a:b])
            before = np.concatenate(([begin[a]], reached[:-1]))
            covered[group] = np.maximum(finish[a:b] - np.maximum(begin[a:b], before), 0).sum()
    own[owner[groups]] -= covered


def nearest(parent: Codes, wanted: npt.NDArray[np.bool_], *, itself: bool) -> Codes:
    """Position of the innermost enclosing event that is `wanted`; -1 where there is none.

    With `itself`, a wanted event is its own answer.
    """
    count = len(parent)
    if not wanted.any():
        return np.full(count, -1, np.int32)
    compiled = compiled_sweep()
    if compiled is not None:
        found = np.empty(count, np.int32)
        compiled.nearest(np.ascontiguousarray(parent, np.int32), np.ascontiguousarray(wanted), found)
        if not itself:
            found = np.where(parent < 0, np.int32(-1), found[parent])
        return found
    # One more entry stands for 'none'; wanted events and 'none' point at themselves, so pointer doubling stops there.
    above = np.where(parent < 0, np.int32(count), parent)
    hop = np.append(above, np.int32(count))
    marks = np.flatnonzero(wanted)
    hop[marks] = marks
    while True:
        further = hop[hop]
        if np.array_equal(further, hop):
            break
        hop = further
    answer = hop[:-1] if itself else hop[above]
    answer[answer == count] = -1
    return answer
