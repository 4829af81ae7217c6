"""Which event encloses which on one track, and the time an event spends outside the events it encloses. Vectorised."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]


def sweep_order(track: Ints, start: Ints, end: Ints, tie: Ints) -> Ints:
    """Events by track, start, longer first, then `tie`: every enclosing event comes before what it encloses."""
    return np.lexsort((tie, -end, start, track))


def parents(track: Ints, start: Ints, end: Ints, order: Ints) -> Ints:
    """Index of the innermost event of the same track that encloses each event; -1 where there is none.

    An event encloses another when it starts no later and ends no earlier; what merely overlaps does not count. An event
    of no length at another's end lies outside it. In sweep order the innermost encloser is the nearest earlier event that
    ends no earlier, found by jumping over events already known to end too early, all events at once: each round at least
    doubles the jumps, so there are about log2(n) of them.
    """
    count = len(order)
    result = np.full(count, -1, np.int64)
    if count == 0:
        return result
    starts, ends, tracks = start[order], end[order], track[order]
    # Twice the time, so that the end of an event of no length can lie half a step later: then only what ends
    # strictly after its instant encloses it. Times are relative, far below 2**62.
    reach = (ends - starts.min()) * 2
    need = reach + (ends == starts)
    jump = np.arange(count, dtype=np.int64) - 1
    first = np.empty(count, bool)
    first[0] = True
    np.not_equal(tracks[1:], tracks[:-1], out=first[1:])
    jump[first] = -1
    # `jump[i]` is never past the encloser: everything between it and i ends before i does.
    active = np.flatnonzero(jump >= 0)
    active = active[reach[jump[active]] < need[active]]
    while len(active):
        jump[active] = _skip(jump, active, reach, need)
        active = active[jump[active] >= 0]
        active = active[reach[jump[active]] < need[active]]
    found = jump >= 0
    result[order[found]] = order[jump[found]]
    return result


def _skip(jump: Ints, active: Ints, reach: Ints, need: Ints) -> Ints:
    """The next candidate of each active event: its candidate's own candidate."""
    return jump[jump[active]]


def self_times(start: Ints, end: Ints, parent: Ints, order: Ints) -> Ints:
    """Duration minus the union of the directly enclosed events. Exact integers; overlapping children count once."""
    own = end - start
    nested = order[parent[order] >= 0]
    if len(nested) == 0:
        return own
    by_parent = nested[np.argsort(parent[nested], kind="stable")]
    owner, begin, finish = parent[by_parent], start[by_parent], end[by_parent]
    first = np.empty(len(by_parent), bool)
    first[0] = True
    np.not_equal(owner[1:], owner[:-1], out=first[1:])
    groups = np.flatnonzero(first)
    overlap = np.zeros(len(by_parent), bool)
    overlap[1:] = ~first[1:] & (begin[1:] < finish[:-1])
    covered = np.add.reduceat(finish - begin, groups)
    if overlap.any():
        number = np.cumsum(first) - 1
        for group in np.unique(number[overlap]):
            low = groups[group]
            high = groups[group + 1] if group + 1 < len(groups) else len(by_parent)
            reached = np.maximum.accumulate(finish[low:high])
            before = np.concatenate(([begin[low]], reached[:-1]))
            covered[group] = np.maximum(finish[low:high] - np.maximum(begin[low:high], before), 0).sum()
    own[owner[groups]] -= covered
    return own


def nearest(parent: Ints, wanted: npt.NDArray[np.bool_], *, itself: bool) -> Ints:
    """Index of the innermost enclosing event that is `wanted`; -1 where there is none.

    With `itself`, a wanted event is its own answer.
    """
    count = len(parent)
    # One more entry stands for 'none'; wanted events and 'none' point at themselves, so pointer doubling stops there.
    hop = np.append(np.where(parent < 0, count, parent), count)
    mark = np.append(wanted, True)
    hop[mark] = np.flatnonzero(mark)
    while True:
        further = hop[hop]
        if np.array_equal(further, hop):
            break
        hop = further
    answer = hop[:-1] if itself else hop[np.where(parent < 0, count, parent)]
    return np.where(answer == count, -1, answer)
