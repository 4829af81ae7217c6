"""Begin and end rows to whole events: nested per thread (B, E), or per id (b, e; S, F)."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field


@dataclass
class Pairs:
    """`begun` and `ended` are parallel row positions; an end of -1 means the event was still open at the end."""

    begun: list[int] = field(default_factory=list)
    ended: list[int] = field(default_factory=list)
    orphans: list[int] = field(default_factory=list)
    """End rows without a begin"""


def pair(
    rows: Sequence[int],
    keys: Sequence[Hashable],
    names: Sequence[str | None],
    begins: Sequence[bool],
) -> Pairs:
    """Pair begin and end rows given in time order. Events with one key nest.

    An end with a name closes the innermost open event of that name and leaves what was opened inside it open; an end
    without a name closes the innermost one; an end that fits nothing is an orphan.
    """
    result = Pairs()
    open_: dict[Hashable, list[tuple[int, str | None]]] = {}
    for row, key, name, begin in zip(rows, keys, names, begins):
        stack = open_.setdefault(key, [])
        if begin:
            stack.append((row, name))
            continue
        for depth in range(len(stack) - 1, -1, -1):
            if not name or stack[depth][1] == name:
                result.begun.append(stack.pop(depth)[0])
                result.ended.append(row)
                break
        else:
            result.orphans.append(row)
    for stack in open_.values():
        for row, _ in stack:
            result.begun.append(row)
            result.ended.append(-1)
    return result
