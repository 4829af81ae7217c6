"""The rows of a chunk by the compiled scanner (`scanner/`), where it is there: the columns of `plain`, in one pass in C."""

from __future__ import annotations

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


@dataclass(frozen=True)
class Scanned:
    """Columns of `count` rows, null in those that are not plain; the numbers of these, and first byte and end of each."""

    count: int
    columns: dict[str, pa.Array]
    other: Ints
    begin: Ints
    stop: Ints


def scan(text: bytes) -> Scanned | None:
    """The rows in `text`, the inside of a JSON array in UTF-8; None where there is no scanner, or it leaves the whole chunk to
    the other readers: no row, no strict JSON, or something beyond its limits."""
    scanner = compiled()
    if scanner is None:
        return None
    limit = min(scanner.bound(text), len(text) // _SMALLEST_ROW_BYTES) + 1
    numbers = np.empty((len(NUMBERS), limit), np.int64)
    codes = np.empty((len(WORDS), limit), np.int32)
    phases = np.empty(limit, np.int32)
    bits = np.empty((len(_COLUMNS), (limit + 7) // 8), np.uint8)
    other = np.empty((3, limit), np.int32)
    parts = np.empty((limit, 1 + _COLLECTIVE_PARTS), np.int32)
    ends = np.empty(limit + 1, np.int32)
    attributes = np.empty(len(text), np.uint8)
    letters = np.empty((len(WORDS), len(text)), np.uint8)
    offsets = np.empty((len(WORDS), limit + 1), np.int32)
    counts = np.zeros(4 + len(_COLUMNS) + len(WORDS), np.int64)
    room = (numbers, codes, phases, bits, other, parts, ends, attributes, letters, offsets, counts)
    if not scanner.scan(text, *room):
        return None
    count, others, collectives, size, *rest = counts.tolist()
    values, distinct = dict(zip(_COLUMNS, rest)), rest[len(_COLUMNS) :]

    def column(name: str, kind: pa.DataType, *data: npt.NDArray[np.generic]) -> pa.Array:
        absent = count - values[name]
        valid = pa.py_buffer(bits[_COLUMNS.index(name)]) if absent else None
        return pa.Array.from_buffers(kind, count, [valid, *map(pa.py_buffer, data)], absent)

    columns = {"ph": pa.DictionaryArray.from_arrays(pa.array(phases[:count]), pa.array(PHASES, pa.string()))}
    for name, data in zip(NUMBERS, numbers):
        if values[name]:
            columns[name] = column(name, pa.int64(), data)
    for place, name in enumerate(WORDS):
        if not distinct[place]:
            continue
        dictionary = _texts(offsets[place, : distinct[place] + 1], letters[place])
        if name == "collective":
            columns[name] = _lists(count, parts[:collectives], dictionary)
            continue
        found = pa.DictionaryArray.from_arrays(column(name, pa.int32(), codes[place]), dictionary)
        columns[name] = found.dictionary_decode() if name in _TEXTS else _words(name, found)
    if values["attributes"]:
        columns["attributes"] = column("attributes", pa.string(), ends, attributes[:size])
    if "ident" in columns:
        columns["id"] = columns["ident"].cast(pa.string())
    return Scanned(count, columns, *other[:, :others])


def _texts(ends: Ints, letters: npt.NDArray[np.uint8]) -> pa.StringArray:
    """Words that lie one behind the other, copied: the room for them is as large as the chunk."""
    buffers = [None, pa.py_buffer(ends.tobytes()), pa.py_buffer(letters[: ends[-1]].tobytes())]
    return pa.Array.from_buffers(pa.string(), len(ends) - 1, buffers)


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
