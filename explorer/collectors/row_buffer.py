"""Rows of one table, written in parts of a bounded size as they come."""

from __future__ import annotations

from typing import Any

import msgspec

from explorer.model.tables import TABLES
from explorer.store.writer import RunWriter

PART_ROWS = 131_072
MAX_DEPTH = 64
MAX_NODES = 200_000
"""Lists and objects in one row's attributes"""
_SCALARS = {int, str, float, bool}
_encoder = msgspec.json.Encoder(enc_hook=str)


def attributes_json(fields: dict[str, Any]) -> str | None:
    """A JSON object of every field that has a value; None where none has.

    Bytes become text, odd types their text, and structures too deep or too large a remark.
    """
    present = {name: value for name, value in fields.items() if value is not None}
    if all(type(value) in _SCALARS for value in present.values()):
        try:
            return _encoder.encode(present).decode() if present else None
        except (UnicodeEncodeError, OverflowError, msgspec.MsgspecError):
            # Lone surrogates, numbers beyond 64 bits.
            pass
    budget = [MAX_NODES]
    kept = {name: _plain(value, 0, budget) for name, value in fields.items() if value is not None}
    return _encoder.encode(kept).decode() if kept else None


def _plain(value: Any, depth: int, budget: list[int]) -> Any:
    if isinstance(value, str):
        # Lone surrogates have no UTF-8 form.
        return value if value.isascii() else value.encode("utf-8", "replace").decode()
    if isinstance(value, bool | float) or value is None:
        return value
    if isinstance(value, int):
        return value if -(2**63) <= value < 2**64 else _long_text(value)
    if isinstance(value, bytes):
        return value.hex() if len(value) <= 4096 else f"{value[:4096].hex()}... ({len(value)} bytes)"
    budget[0] -= 1
    if depth > MAX_DEPTH or budget[0] < 0:
        return "(too deep or too large)"
    if isinstance(value, dict):
        return {_key(key): _plain(item, depth + 1, budget) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(item, depth + 1, budget) for item in value]
    return str(value)


def _key(key: Any) -> str:
    text = (
        key
        if isinstance(key, str)
        else repr(key)
        if isinstance(key, float | bool) or key is None
        else str(key)[:4096]
    )
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _long_text(value: int) -> str:
    # Decimal text of a huge number costs quadratic time.
    return str(value) if value.bit_length() <= 4096 else f"(number of {value.bit_length()} bits)"


class RowBuffer:
    """Collects rows of one table.

    Args:
        writer: the rank's writer.
        table: name of the table.
        names: the columns that rows give, in order.
    """

    def __init__(self, writer: RunWriter, table: str, names: tuple[str, ...]) -> None:
        spec = TABLES[table]
        for name in names:
            spec.column(name)
        self._writer = writer
        self._table = table
        self._names = names
        self._rows: list[tuple[Any, ...]] = []
        self.count = 0

    def add(self, *values: Any) -> None:
        """Add one row, a value a column."""
        self._rows.append(values)
        self.count += 1
        if len(self._rows) >= PART_ROWS:
            self.flush()

    def flush(self) -> None:
        """Write what is held."""
        if self._rows:
            self._writer.write(self._table, dict(zip(self._names, (list(c) for c in zip(*self._rows)))))
            self._rows = []
