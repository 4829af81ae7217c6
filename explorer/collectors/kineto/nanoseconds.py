"""Decimal text in microseconds to exact integer nanoseconds, a column at a time, with no float on the way."""

from __future__ import annotations

from decimal import ROUND_HALF_EVEN, Decimal, InvalidOperation

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_INT64_MAX = (1 << 63) - 1
_EXACT = pa.decimal128(38, 3)
_FINE = pa.decimal128(38, 15)


def nanoseconds(text: pa.StringArray) -> pa.Int64Array:
    """Microseconds as JSON text (number, or number in quotes) to nanoseconds; null where it is no number or beyond int64.

    Digits below the nanosecond are rounded half to even.
    """
    plain = pc.utf8_trim(text, '" ')
    plain = pc.if_else(pc.equal(pc.binary_length(plain), 0), pa.scalar(None, pa.string()), plain)
    try:
        return _integers(plain.cast(_EXACT))
    except pa.ArrowInvalid:
        pass
    try:
        fine = plain.cast(_FINE)
        return _integers(pc.round(fine, ndigits=3, round_mode="half_to_even").cast(_EXACT, safe=False))
    except pa.ArrowInvalid:
        return _one_by_one(plain)


def _integers(values: pa.Decimal128Array) -> pa.Int64Array:
    """The unscaled integers of a decimal128 column; null outside int64."""
    count = len(values)
    if count == 0:
        return pa.array([], pa.int64())
    words = np.frombuffer(values.buffers()[1], np.int64).reshape(-1, 2)[values.offset : values.offset + count]
    low, high = words[:, 0], words[:, 1]
    missing = np.asarray(pc.is_null(values)) | (high != (low >> 63))
    return pa.array(np.where(missing, 0, low), mask=missing)


def _one_by_one(text: pa.StringArray) -> pa.Int64Array:
    distinct = text.dictionary_encode()
    table = pa.array([_one(value) for value in distinct.dictionary.to_pylist()], pa.int64())
    return table.take(distinct.indices)


def _one(text: str) -> int | None:
    try:
        value = Decimal(text)
        if not value.is_finite() or value.adjusted() > 18:
            return None
        whole = int((value * 1000).to_integral_value(ROUND_HALF_EVEN))
    except (InvalidOperation, ValueError):
        return None
    return whole if -_INT64_MAX <= whole <= _INT64_MAX else None
