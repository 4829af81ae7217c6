"""Stretches of a text as Arrow arrays, cut out by Arrow itself."""

from __future__ import annotations

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

Ints = npt.NDArray[np.int64]


def cut_out(joined: bytes, start: Ints, end: Ints) -> pa.StringArray:
    """The stretches from `start` to `end`, which follow each other without overlap. `joined` must be UTF-8."""
    count = len(start)
    if not count:
        return pa.array([], pa.string())
    # The stretches and what lies between them, as one array over the text; of that every other value.
    bounds = np.empty(2 * count, np.int32)
    bounds[0::2] = start
    bounds[1::2] = end
    whole = pa.StringArray.from_buffers(2 * count - 1, pa.py_buffer(bounds), pa.py_buffer(joined))
    return whole.take(pa.array(np.arange(0, 2 * count, 2, dtype=np.int32)))


def words(texts: pa.StringArray) -> pa.DictionaryArray:
    """The insides of JSON texts as a dictionary of what they mean."""
    return meant(texts.dictionary_encode())


def meant(encoded: pa.DictionaryArray) -> pa.DictionaryArray:
    """A dictionary of insides of JSON texts as one of what they mean."""
    values = encoded.dictionary.to_pylist()
    if not any("\\" in value for value in values):
        return encoded
    return relabelled(encoded, [msgspec.json.decode(f'"{v}"') if "\\" in v else v for v in values])


def relabelled(encoded: pa.DictionaryArray, values: list[str | None]) -> pa.DictionaryArray:
    """The same with other words, each of which stands in the dictionary once."""
    known = {value: place for place, value in enumerate(dict.fromkeys(v for v in values if v is not None))}
    codes = pa.array([None if value is None else known[value] for value in values], pa.int32())
    return pa.DictionaryArray.from_arrays(codes.take(encoded.indices), pa.array(list(known), pa.string()))
