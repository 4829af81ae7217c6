"""Steps of one rank from ranges of several threads: each step once, none over another."""

from __future__ import annotations

from collections.abc import Iterable

Step = tuple[int, int, int]
"""Number, start, end"""


def settled(steps: Iterable[Step]) -> list[Step]:
    """Steps in order of time, not overlapping.

    Ranges of one number that overlap (several threads or processes mark the same step) become one; a range inside
    another step is no step of its own; one that begins before the last ends begins at that end.
    """
    merged: list[Step] = []
    for number, start, end in sorted(steps, key=lambda step: (step[0], step[1])):
        if merged and merged[-1][0] == number and start <= merged[-1][2]:
            merged[-1] = (number, merged[-1][1], max(end, merged[-1][2]))
        else:
            merged.append((number, start, end))
    found: list[Step] = []
    for number, start, end in sorted(merged, key=lambda step: (step[1], -step[2])):
        last = found[-1][2] if found else start
        if found and end <= last:
            continue
        found.append((number, max(start, last), end))
    return found
