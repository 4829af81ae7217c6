"""Plain interval arithmetic for expected numbers; shares no code with the program."""

from __future__ import annotations

Interval = tuple[int, int]


def union(intervals: list[Interval]) -> list[Interval]:
    """Merged intervals, sorted; touching ones become one."""
    merged: list[Interval] = []
    for start, end in sorted(intervals):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return merged


def length(intervals: list[Interval]) -> int:
    """Time covered by at least one interval."""
    return sum(end - start for start, end in union(intervals))


def intersect(left: list[Interval], right: list[Interval]) -> list[Interval]:
    """Time covered by both."""
    found = []
    for a, b in union(left):
        for c, d in union(right):
            if max(a, c) < min(b, d):
                found.append((max(a, c), min(b, d)))
    return found


def subtract(left: list[Interval], right: list[Interval]) -> int:
    """Time covered by left and not by right."""
    return length(left) - length(intersect(left, right))
