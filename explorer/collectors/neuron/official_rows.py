"""The rows of official tables that speak of one process, where a profile speaks of several."""

from __future__ import annotations

import os
from collections.abc import Sequence

import pyarrow.parquet as pq

from explorer.collectors.neuron.tables import ProfileTables, SourceTable, quoted, text_literal
from explorer.model.neuron_schema import TABLE_PREFIX
from explorer.store.manifest import Part
from explorer.store.writer import RunWriter

BATCH_ROWS = 122_880


Process = tuple[str | None, int | None]
"""Instance and process id, as table SystemProfileEvents writes them."""


def keep_process_rows(
    writer: RunWriter, tables: ProfileTables, own: Process, sharers: Sequence[Process]
) -> dict[str, int]:
    """Keep a process's rows of every table of a profile, with all columns. Returns rows by table.

    Rows of a table with process ids are kept by their process alone; of one that knows only the instance (a host's memory), by every
    process of that instance; tables that know neither are kept whole by each. What belongs to none of the processes stays
    with the first.

    Args:
        sharers: every process that keeps rows of this profile.
    """
    kept: dict[str, int] = {}
    for source in tables.sources.values():
        condition = _condition(source, own)
        if own == sharers[0]:
            condition = f"{condition} OR NOT ({' OR '.join(_condition(source, each) for each in sharers)})"
        if not source.files or not (rows := _count(tables, source.name, condition)):
            continue
        target = writer.allocate(f"{TABLE_PREFIX}{source.name}")
        _write(writer, tables, source.name, condition, target)
        kept[source.name] = rows
        writer.add(
            Part(
                table=f"{TABLE_PREFIX}{source.name}",
                path=target,
                rows=rows,
                size_bytes=writer.location.size(target),
                profile=tables.profile.name,
            )
        )
    return kept


def _condition(source: SourceTable, process: Process) -> str:
    """SQL: the row belongs to this process."""
    instance, number = process
    parts = []
    if column := source.official.get("instance_id"):
        value = "NULL" if instance is None else text_literal(instance)
        parts.append(f"CAST({quoted(column)} AS VARCHAR) IS NOT DISTINCT FROM {value}")
    if column := source.official.get("process_id"):
        value = "NULL" if number is None else str(int(number))
        parts.append(f"TRY_CAST({quoted(column)} AS BIGINT) IS NOT DISTINCT FROM {value}")
    return f"({' AND '.join(parts) or 'true'})"


def _count(tables: ProfileTables, name: str, condition: str) -> int:
    return int(tables.value(f"SELECT count(*) FROM {tables.scan(name)} WHERE {condition}") or 0)


def _write(writer: RunWriter, tables: ProfileTables, name: str, condition: str, target: str) -> None:
    rows = tables.connection.sql(f"SELECT * FROM {tables.scan(name)} WHERE {condition}")
    reader = rows.to_arrow_reader(BATCH_ROWS)
    writer.location.make_folder(os.path.dirname(target))
    with pq.ParquetWriter(
        writer.location.join(target), reader.schema, filesystem=writer.location.filesystem, compression="zstd"
    ) as file:
        for batch in reader:
            file.write_batch(batch)
