"""Official tables kept in the run as they came: every file copied byte for byte, listed with its profile."""

from __future__ import annotations

import os
import shutil

import pyarrow.parquet as pq

from explorer.collectors.neuron.tables import ProfileTables
from explorer.model.neuron_schema import TABLE_PREFIX
from explorer.model.schema import Column, Table
from explorer.store.manifest import Part
from explorer.store.writer import RunWriter

EVENT_OFFSETS = Table(
    f"{TABLE_PREFIX}EventOffsets",
    "How official rows and events join: events.event_id = <table>.id + id_offset, within rank and profile.",
    (
        Column("rank", "int32", "Process rank"),
        Column("profile", "string", "Name of the profile"),
        Column("table_name", "string", "Official table"),
        Column("id_offset", "int64", "Added to the table's id gives the event's"),
        Column("device_index", "int32", "Device number of the profile's logical core"),
        Column("clock_offset_ns", "int64", "Host time minus device time at the profile's start", unit="ns"),
    ),
)


def copy_tables(writer: RunWriter, tables: ProfileTables) -> dict[str, int]:
    """Copy every readable file of a profile into the run. Returns rows by table."""
    rows: dict[str, int] = {}
    for source in tables.sources.values():
        for path in source.files:
            name = f"{TABLE_PREFIX}{source.name}"
            target = writer.allocate(name)
            writer.location.make_folder(os.path.dirname(target))
            if writer.location.filesystem is None:
                shutil.copyfile(path, writer.location.join(target))
            else:
                writer.location.filesystem.put_file(path, writer.location.join(target))
            count = pq.read_metadata(path).num_rows
            rows[source.name] = rows.get(source.name, 0) + count
            writer.add(
                Part(
                    table=name,
                    path=target,
                    rows=count,
                    size_bytes=os.path.getsize(path),
                    profile=tables.profile.name,
                )
            )
    return rows


def describe_tables(tables: ProfileTables) -> dict[str, dict[str, str]]:
    """Columns with their DuckDB types by table, for the manifest: readers need not open every footer."""
    return {source.name: dict(source.columns) for source in tables.sources.values() if source.files}
