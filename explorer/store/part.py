"""Writing one Parquet part: rows brought to the table's schema, sorted, compressed, documented."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from explorer.model.schema import METADATA_KEY, Table
from explorer.model.utf8_text import utf8_value
from explorer.store.location import Location
from explorer.store.manifest import Part

ROW_GROUP_ROWS = 131_072
COMPRESSION_LEVEL = 1
"""Level 3 takes longer and makes events no smaller."""
ASCENDING = (
    "event_id", "start_ns", "timestamp_ns", "parent_id", "launch_id", "op_id", "correlation_id", "source_id", "target_id",
)  # fmt: skip
"""Numbers that grow along the rows and hardly repeat: stored as differences, which takes half the space and time."""
UNIQUE_TEXTS = ("attributes",)
"""Texts that hardly repeat as a whole, and that nobody looks up by range."""
UNRANGED = (*UNIQUE_TEXTS, "name", "phase", "attribution", "precision", "shapes", "dtypes")
"""Texts whose least and greatest value say nothing about a stretch of rows: finding these takes half the time of such a
column."""

Rows: TypeAlias = pa.Table | pa.RecordBatch | Mapping[str, Any] | Sequence[Mapping[str, Any]]


def conform(table: Table, rows: Rows, rank: int) -> pa.Table:
    """Bring rows to the table's columns, in order.

    Accepts an Arrow table or batch, a mapping of column to values, or a sequence of row mappings. Missing nullable
    columns and `rank` are filled in; dictionary-encoded strings stay so; what has no UTF-8 form is escaped. Raises ValueError for unknown columns,
    missing required ones, or nulls in a required column.
    """
    if isinstance(rows, pa.RecordBatch):
        rows = pa.Table.from_batches([rows])
    if not isinstance(rows, pa.Table | Mapping):
        rows = {
            name: [row.get(name) for row in rows] for name in table.names if any(name in row for row in rows)
        } or {name: [] for name in table.names}
    given = {name: rows[name] for name in (rows.column_names if isinstance(rows, pa.Table) else rows)}
    if unknown := set(given) - set(table.names):
        raise ValueError(f"table {table.name} has no column {', '.join(sorted(unknown))}")
    count = len(next(iter(given.values()))) if given else 0
    schema = table.arrow_schema()
    columns: list[pa.ChunkedArray | pa.Array] = []
    fields: list[pa.Field] = []
    for column, field in zip(table.columns, schema):
        if column.name in given:
            values = _array(given[column.name], field.type)
            if values.null_count and not column.nullable:
                raise ValueError(f"column {table.name}.{column.name} holds {values.null_count} nulls")
        elif column.name == "rank":
            values = pa.repeat(pa.scalar(rank, pa.int32()), count)
        elif column.nullable:
            values = pa.nulls(count, field.type)
        else:
            raise ValueError(f"column {table.name}.{column.name} is missing")
        columns.append(values)
        fields.append(field.with_type(values.type))
    return pa.table(columns, schema=pa.schema(fields, metadata=schema.metadata))


def _array(values: Any, kind: pa.DataType) -> pa.Array | pa.ChunkedArray:
    if not isinstance(values, pa.Array | pa.ChunkedArray):
        if hasattr(values, "dtype"):
            values = pa.array(values)
        else:
            try:
                return pa.array(values, kind)
            except UnicodeEncodeError:
                return pa.array(utf8_value(list(values)), kind)
    if values.type == kind:
        return values
    if pa.types.is_dictionary(values.type) and kind == pa.string():
        return (
            values
            if values.type.value_type == kind
            else values.cast(pa.dictionary(values.type.index_type, kind))
        )
    return values.cast(kind)


def sorted_rows(table: Table, rows: pa.Table) -> pa.Table:
    """Rows in the table's order; untouched where they already are."""
    keys = [key for key in table.sort_by if key in rows.column_names]
    if not keys or rows.num_rows < 2:
        return rows
    if len(keys) == 1 or keys[0] in ("start_ns", "timestamp_ns"):
        first = rows.column(keys[0])
        if pc.all(pc.less_equal(first.slice(0, len(first) - 1), first.slice(1))).as_py() and len(keys) == 1:
            return rows
    return rows.sort_by([(key, "ascending") for key in keys])


def write_part(
    location: Location, path: str, table: Table, rows: Rows, rank: int, *, presorted: bool = False
) -> Part:
    """Write one part and describe it; no rows make no file. Safe to call in another process; the part exists once a
    manifest lists it."""
    data = conform(table, rows, rank)
    if not data.num_rows:
        return Part(table=table.name, path=path, rows=0, size_bytes=0)
    if not presorted:
        data = sorted_rows(table, data)
    location.make_folder(os.path.dirname(path))
    write_parquet(location, path, data)
    start, end = _range(data)
    return Part(
        table=table.name,
        path=path,
        rows=data.num_rows,
        size_bytes=location.size(path),
        start_ns=start,
        end_ns=end,
    )


def write_parquet(location: Location, path: str, data: pa.Table) -> None:
    """Plain Parquet types (no Arrow schema block), encoded by what the columns hold, zstd, with the table's documentation in the file metadata."""
    metadata = data.schema.metadata or {}
    differences = {
        f.name: "DELTA_BINARY_PACKED"
        for f in data.schema
        if f.name in ASCENDING and pa.types.is_integer(f.type)
    }
    plain = {
        f.name for f in data.schema if f.name in UNIQUE_TEXTS and not pa.types.is_dictionary(f.type)
    } | differences.keys()
    with pq.ParquetWriter(
        location.join(path),
        data.schema,
        filesystem=location.filesystem,
        compression="zstd",
        compression_level=COMPRESSION_LEVEL,
        store_schema=False,
        use_dictionary=[name for name in data.column_names if name not in plain] or False,
        column_encoding=differences or None,
        write_statistics=[name for name in data.column_names if name not in UNRANGED] or False,
        write_page_index=True,
    ) as writer:
        writer.write_table(data, row_group_size=ROW_GROUP_ROWS)
        if METADATA_KEY in metadata:
            writer.add_key_value_metadata({METADATA_KEY: metadata[METADATA_KEY]})


def _range(data: pa.Table) -> tuple[int | None, int | None]:
    name = next((n for n in ("start_ns", "timestamp_ns") if n in data.column_names), None)
    if name is None or data.num_rows == 0:
        return None, None
    starts = data.column(name)
    ends = pc.add(starts, data.column("duration_ns")) if "duration_ns" in data.column_names else starts
    return pc.min(starts).as_py(), pc.max(ends).as_py()
