"""Names of columns, each once: rows as dictionaries and JSON hold one value a name."""

from __future__ import annotations

from collections.abc import Sequence


def distinct_names(names: Sequence[str]) -> list[str]:
    """The names, a repeated one with the first free number behind it: a, b, a becomes a, b, a_1."""
    taken, found = set(names), set()
    result = []
    for name in names:
        distinct, number = name, 0
        while distinct in found or (number and distinct in taken):
            number += 1
            distinct = f"{name}_{number}"
        found.add(distinct)
        result.append(distinct)
    return result
