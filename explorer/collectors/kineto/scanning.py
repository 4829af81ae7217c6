"""The rows of a chunk by the compiled scanner (`scanner/`), where it is there: the columns of `plain`, in one pass in C."""

from __future__ import annotations

import threading
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from explorer.collectors.kineto.compiled import compiled
from explorer.collectors.kineto.plain import track_part
from explorer.collectors.kineto.spans import meant, relabelled

Ints = npt.NDArray[np.int32]

NUMBERS = (
    "ts", "dur", "ident", "external_id", "correlation_id", "flops", "sequence_number", "forward_thread", "stream",
    "device", "size_bytes", "address", "allocated_bytes", "reserved_bytes", "device_type", "memory_device",
)  # fmt: skip
WORDS = (
    "cat", "name", "pid", "tid", "shapes", "dtypes", "call_stack", "label", "args", "collective",
)  # fmt: skip
PHASES = tuple("XstfiMCBE")
_COLUMNS = (*NUMBERS, *WORDS, "attributes")
"""All of these in the order the scanner has them."""
_TEXTS = ("label", "args")
_COLLECTIVE_PARTS = 11
_SMALLEST_ROW_BYTES = 10
_KEPT_BYTES = 16 << 20
_local = threading.local()


@dataclass(frozen=True)
class Scanned:
    """Columns of `count` rows, null in those that are not plain; the numbers of these, and first byte and end of each."""

    count: int
    columns: dict[str, pa.Array]
    has_hierarchies: bool
    """Whether args name modules"""
    other: Ints
    begin: Ints
    stop: Ints


@dataclass
class _Room:
    """Where the scanner writes, in the order it wants it; each thread keeps one for its next chunk."""

    numbers: npt.NDArray[np.int64]
    codes: Ints
    phases: Ints
    bits: npt.NDArray[np.uint8]
    other: Ints
    parts: Ints
    ends: Ints
    attributes: npt.NDArray[np.uint8]
    letters: npt.NDArray[np.uint8]
    offsets: Ints
    counts: npt.NDArray[np.int64]


def _room(limit: int, size: int) -> _Room:
    """Room for `limit` rows in a text of `size` bytes."""
    kept: _Room | None = getattr(_local, "room", None)
    if kept is not None and len(kept.phases) >= limit and len(kept.attributes) >= size:
        return kept
    limit, size = limit + (limit >> 2), size + (size >> 2)
    room = _Room(
        numbers=np.empty((len(NUMBERS), limit), np.int64),
        codes=np.empty((len(WORDS), limit), np.int32),
        phases=np.empty(limit, np.int32),
        bits=np.empty((len(_COLUMNS), (limit + 7) // 8), np.uint8),
        other=np.empty((3, limit), np.int32),
        parts=np.empty((limit, 1 + _COLLECTIVE_PARTS), np.int32),
        ends=np.empty(limit + 1, np.int32),
        attributes=np.empty(size, np.uint8),
        letters=np.empty((len(WORDS), size), np.uint8),
        offsets=np.empty((len(WORDS), limit + 1), np.int32),
        counts=np.zeros(5 + len(_COLUMNS) + len(WORDS), np.int64),
    )
    if size <= _KEPT_BYTES:
        _local.room = room
    return room


def scan(text: bytes) -> Scanned | None:
    """The rows in `text`, the inside of a JSON array in UTF-8; None where there is no scanner, or it leaves the whole chunk to
    the other readers: no row, no strict JSON, or something beyond its limits."""
    scanner = compiled()
    if scanner is None:
        return None
    limit = min(scanner.bound(text), len(text) // _SMALLEST_ROW_BYTES) + 1
    room = _room(limit, len(text))
    if not scanner.scan(text, *vars(room).values()):
        return None
    count, others, collectives, size, hierarchies, *rest = room.counts.tolist()
    values, distinct = dict(zip(_COLUMNS, rest)), rest[len(_COLUMNS) :]

    def column(name: str, kind: pa.DataType, *data: npt.NDArray[np.generic]) -> pa.Array:
        absent = count - values[name]
        valid = room.bits[_COLUMNS.index(name), : (count + 7) // 8]
        return pa.Array.from_buffers(
            kind, count, [_copied(valid) if absent else None, *map(_copied, data)], absent
        )

    columns = {
        "ph": pa.DictionaryArray.from_arrays(
            pa.array(room.phases[:count].copy()), pa.array(PHASES, pa.string())
        )
    }
    for name, data in zip(NUMBERS, room.numbers[:, :count]):
        if values[name]:
            columns[name] = column(name, pa.int64(), data)
    for place, name in enumerate(WORDS):
        if not distinct[place]:
            continue
        dictionary = _texts(room.offsets[place, : distinct[place] + 1], room.letters[place])
        if name == "collective":
            columns[name] = _lists(count, room.parts[:collectives], dictionary)
            continue
        found = pa.DictionaryArray.from_arrays(
            column(name, pa.int32(), room.codes[place, :count]), dictionary
        )
        columns[name] = found.dictionary_decode() if name in _TEXTS else _words(name, found)
    if values["attributes"]:
        columns["attributes"] = column(
            "attributes", pa.string(), room.ends[: count + 1], room.attributes[:size]
        )
    if "ident" in columns:
        columns["id"] = columns["ident"].cast(pa.string())
    return Scanned(count, columns, hierarchies > 0, *room.other[:, :others].copy())


def _copied(data: npt.NDArray[np.generic]) -> pa.Buffer:
    return pa.py_buffer(data.copy())


def _texts(ends: Ints, letters: npt.NDArray[np.uint8]) -> pa.StringArray:
    """Words that lie one behind the other."""
    return pa.Array.from_buffers(
        pa.string(), len(ends) - 1, [None, _copied(ends), _copied(letters[: ends[-1]])]
    )


def _lists(count: int, parts: Ints, texts: pa.StringArray) -> pa.ListArray:
    """Of the rows that communicate what they say of it, as numbers in `texts` (-1: nothing) after the row's number."""
    codes = np.ascontiguousarray(parts[:, 1:]).ravel()
    described = np.zeros(count, bool)
    described[parts[:, 0]] = True
    ends = np.zeros(count + 1, np.int32)
    np.cumsum(described * np.int32(_COLLECTIVE_PARTS), out=ends[1:])
    values = texts.take(pa.array(codes, mask=codes < 0))
    return pa.ListArray.from_arrays(pa.array(ends), values, mask=pa.array(~described))


def _words(name: str, found: pa.DictionaryArray) -> pa.DictionaryArray:
    if name in ("shapes", "dtypes"):
        return found
    if name not in ("pid", "tid"):
        return meant(found)
    values = found.dictionary.to_pylist()
    parts = [track_part(value) for value in values]
    return found if parts == values else relabelled(found, parts)
