"""Rows of one table, written in parts of a bounded size as they come."""

from __future__ import annotations

from typing import Any

import msgspec

from explorer.model.tables import TABLES
from explorer.store.writer import RunWriter

PART_ROWS = 131_072
_encoder = msgspec.json.Encoder(enc_hook=str)


def attributes_json(fields: dict[str, Any]) -> str | None:
    """A JSON object of every field that has a value; None where none has. Bytes become text, odd types their text."""
    kept = {name: _plain(value) for name, value in fields.items() if value is not None}
    return _encoder.encode(kept).decode() if kept else None


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        # Lone surrogates have no UTF-8 form.
        return value if value.isascii() else value.encode("utf-8", "replace").decode()
    if isinstance(value, bytes):
        return value.hex() if len(value) <= 4096 else f"{value[:4096].hex()}... ({len(value)} bytes)"
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        return str(value)
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(item) for item in value]
    return value


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
