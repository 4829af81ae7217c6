"""The distinct numbers of an array, by hashing: several times faster than by sorting."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

HASHED = 1 << 21
"""So many numbers are hashed at once: what the table of more would take is not numpy's, and cannot lie in files."""


def distinct(values: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[np.int32]]:
    """Each number once, in order of first appearance, and for every value its position among them."""
    if len(values) <= HASHED:
        return _by_hashing(values)
    codes = np.empty(len(values), np.int32)
    pieces, count = [], 0
    for low in range(0, len(values), HASHED):
        found, places = _by_hashing(values[low : low + HASHED])
        np.add(places, count, out=codes[low : low + HASHED], casting="unsafe")
        pieces.append(found)
        count += len(found)
    among = np.concatenate(pieces)
    del pieces
    unique, place = distinct(among) if count <= len(values) // 2 else _by_sorting(among)
    for low in range(0, len(values), HASHED):
        codes[low : low + HASHED] = place[codes[low : low + HASHED]]
    return unique, codes


def _by_hashing(values: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[np.int32]]:
    encoded = pa.array(values).dictionary_encode()
    return np.asarray(encoded.dictionary), np.asarray(encoded.indices)


def _by_sorting(values: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[np.int32]]:
    found, first, places = np.unique(values, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    rank = np.empty(len(order), np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    return found[order], rank[places]
