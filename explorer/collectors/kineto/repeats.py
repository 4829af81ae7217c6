"""Rows in which a JSON object has a name twice: of its values the last one counts, the others are kept beside it."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

Ints = npt.NDArray[np.int64]
_MOST = 100_000
_different: set[int] = set()
"""Sums of rows whose names are known to be different."""


def rows_with_repeats(
    joined: bytes,
    begin: Ints,
    stop: Ints,
    code: npt.NDArray[np.uint64],
    first: Ints,
    members: Ints,
    escaped: Ints,
) -> list[int]:
    """The rows, ascending. `code` is a number for the place and name of each member, `first` and `members` say which ones
    a row has. Equal names have equal codes; rows with equal sums of them are looked at once, and each of the `escaped` ones,
    where a name is written with a backslash."""
    rows = np.flatnonzero(members > 1)
    if not len(rows):
        return []
    # Not linear, or two names could make up for two others.
    mixed = code ^ (code >> np.uint64(29))
    mixed *= np.uint64(0x9E3779B97F4A7C15)
    mixed ^= mixed >> np.uint64(32)
    sums = np.add.reduceat(mixed, first[members > 0])[members[members > 0] > 1]
    if len(_different) > _MOST:
        _different.clear()
    found = {row for row in escaped.tolist() if _repeats(joined[begin[row] : stop[row]])}
    for value in set(pa.array(sums).unique().to_pylist()) - _different:
        same = rows[sums == np.uint64(value)]
        row = int(same[0])
        if len(np.unique(code[first[row] : first[row] + members[row]])) == members[row]:
            _different.add(value)
            continue
        found.update(row for row in same.tolist() if _repeats(joined[begin[row] : stop[row]]))
    return sorted(found)


def _repeats(text: bytes) -> bool:
    found = False

    def look(pairs: list[tuple[str, Any]]) -> None:
        nonlocal found
        found |= len({name for name, _ in pairs}) < len(pairs)

    try:
        json.loads(text, object_pairs_hook=look)
    except (ValueError, RecursionError):
        return False
    return found


def last_counts(text: str) -> str:
    """A row with each name once: the last value counts, as in Python's json; earlier ones stand under `repeated_names`.

    Numbers keep their digits. A row that cannot be written anew is given back as it is.
    """
    earlier: dict[str, list[Any]] = {}

    def collect(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, value in pairs:
            if name in found:
                earlier.setdefault(name, []).append(found[name])
            found[name] = value
        return found

    try:
        row = json.loads(text, object_pairs_hook=collect, parse_float=_as_written, parse_int=_as_written)
        if not isinstance(row, dict) or not earlier:
            return text
        return msgspec.json.encode({**row, "repeated_names": earlier}).decode()
    except (ValueError, RecursionError, msgspec.MsgspecError):
        return text


def _as_written(number: str) -> msgspec.Raw:
    return msgspec.Raw(number.encode())
