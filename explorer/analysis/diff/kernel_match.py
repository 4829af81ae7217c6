"""Matching kernels whose names changed: other template arguments, another library version, another vendor."""

from __future__ import annotations

import re
from typing import Any

_TEMPLATE = re.compile(r"<.*>", re.DOTALL)
_NUMBER = re.compile(r"\d+")
_HASH = re.compile(r"\b[0-9a-f]{8,}\b")


def family(name: str) -> str:
    """A kernel's name without template arguments, hashes and numbers."""
    return _NUMBER.sub("#", _HASH.sub("", _TEMPLATE.sub("<>", name)))


def renamed_kernels(before: list[dict[str, Any]], after: list[dict[str, Any]]) -> dict[str, str]:
    """Old name to new name for kernels that vanished and appeared under another name.

    Args:
        before, after: rows with kernel, op, file, line, duration_ns (`path_work`).

    First those of one family, then those that alone do the work of the same op at the same line.
    """
    old = {row["kernel"] for row in before if row["kernel"]}
    new = {row["kernel"] for row in after if row["kernel"]}
    gone, come = old - new, new - old
    renamed: dict[str, str] = {}

    def pair(key_of_old: dict[str, Any], key_of_new: dict[str, Any]) -> None:
        by_key: dict[Any, list[str]] = {}
        for name in come - set(renamed.values()):
            by_key.setdefault(key_of_new[name], []).append(name)
        seen: dict[Any, list[str]] = {}
        for name in gone - set(renamed):
            seen.setdefault(key_of_old[name], []).append(name)
        for key, names in seen.items():
            if len(names) == 1 and len(by_key.get(key, ())) == 1:
                renamed[names[0]] = by_key[key][0]

    pair({name: family(name) for name in gone}, {name: family(name) for name in come})
    pair(_work_of(before, gone), _work_of(after, come))
    return renamed


def _work_of(rows: list[dict[str, Any]], names: set[str]) -> dict[str, Any]:
    """For each kernel the ops and lines it works for."""
    work: dict[str, set[tuple[Any, ...]]] = {name: set() for name in names}
    for row in rows:
        if row["kernel"] in names:
            work[row["kernel"]].add((row["op"], row["file"], row["line"]))
    return {name: tuple(sorted(map(str, places))) for name, places in work.items()}
