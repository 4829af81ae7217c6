"""Collects rows of official tables and writes them as a Neuron Explorer Parquet directory."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from explorer.model.neuron_schema import official_tables

ARROW_TYPES = {
    "int32": pa.int32(),
    "int64": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "string": pa.string(),
    "array<int64>": pa.list_(pa.int64()),
    "array<string>": pa.list_(pa.string()),
}

DEFAULTS: dict[str, Any] = {
    "int32": 0,
    "int64": 0,
    "float": 0.0,
    "double": 0.0,
    "boolean": False,
    "string": "",
    "array<int64>": [],
    "array<string>": [],
}


def arrow_schema(table: str) -> pa.Schema:
    """The official table as an Arrow schema; required columns are not nullable."""
    return pa.schema(
        [
            pa.field(column.name, ARROW_TYPES[column.type], not column.required)
            for column in official_tables()[table].columns.values()
        ]
    )


class ProfileBuilder:
    """Rows by table. `row` fills required columns that are not given with zero or empty values, optional ones with null."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.rows: dict[str, list[dict[str, Any]]] = defaultdict(list)
        self._ids: dict[str, int] = defaultdict(lambda: 100)

    def row(self, table: str, **values: Any) -> dict[str, Any]:
        """Add one row. Raises KeyError for a column the official table does not have."""
        columns = official_tables()[table].columns
        if unknown := set(values) - set(columns):
            raise KeyError(f"{table} has no column {sorted(unknown)}")
        row = {c.name: values.get(c.name, DEFAULTS[c.type] if c.required else None) for c in columns.values()}
        self.rows[table].append(row)
        return row

    def next_id(self, table: str) -> int:
        """Fresh ids, not starting at zero, with holes, as ids of real files need not be dense."""
        self._ids[table] += 1 if self._ids[table] % 7 else 3
        return self._ids[table]

    def timed(self, table: str, start: int, duration: int, **values: Any) -> dict[str, Any]:
        """A row with start_ts, end_ts and duration_ns."""
        return self.row(table, start_ts=start, end_ts=start + duration, duration_ns=duration, **values)

    def write(self, folder: Path, *, split: dict[str, int] | None = None) -> Path:
        """Write `<folder>/<name>@latest/<Table>.parquet`; tables in `split` as that many files `_0`, `_1`, ...

        Tables without rows are simply absent, as in the real thing.
        """
        target = folder / f"{self.name}@latest"
        target.mkdir(parents=True, exist_ok=True)
        for table, rows in self.rows.items():
            data = pa.Table.from_pylist(rows, schema=arrow_schema(table))
            pieces = (split or {}).get(table, 1)
            if pieces == 1:
                pq.write_table(data, target / f"{table}.parquet")
                continue
            size = -(-data.num_rows // pieces)
            for number in range(pieces):
                pq.write_table(data.slice(number * size, size), target / f"{table}_{number}.parquet")
        return target
