"""Decoded chunks on their way from reading to writing: in memory while they are few, in a scratch folder after that."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.ipc as ipc

from explorer.collectors.claimed_folder import ClaimedFolder, scratch_folder
from explorer.collectors.kineto.columns import Column, Values, store_column
from explorer.collectors.kineto.rows import SCHEMA

_OPTIONS = ipc.IpcWriteOptions(compression="lz4")


def store(rows: pa.Table, path: str) -> None:
    """Write a chunk to the scratch folder. Columns without any value are left out."""
    rows = rows.select([name for name in rows.column_names if rows.column(name).null_count < rows.num_rows])
    with pa.OSFile(path, "wb") as file, ipc.new_file(file, rows.schema, options=_OPTIONS) as writer:
        writer.write_table(rows)


def load(stored: pa.Table | str, wanted: list[str] | None = None) -> pa.Table:
    """A chunk, from memory or from the scratch folder: all columns, or those that are wanted."""
    names = SCHEMA.names if wanted is None else wanted
    if isinstance(stored, pa.Table):
        return stored.select(names)
    with pa.memory_map(stored) as file:
        schema = ipc.open_file(file).schema
        places = [place for place, name in enumerate(schema.names) if name in names]
        if not places:
            # A file of which no column is wanted would be read whole.
            places = [0]
        rows = ipc.open_file(file, options=ipc.IpcReadOptions(included_fields=places)).read_all()
    known = set(rows.column_names)
    kinds = [SCHEMA.field(name).type for name in names]
    columns = [rows.column(n) if n in known else pa.nulls(len(rows), k) for n, k in zip(names, kinds)]
    return pa.table(columns, pa.schema(list(zip(names, kinds))))


@dataclass
class Spool:
    """The chunks of one trace in order, with the number of rows of each."""

    chunks: list[pa.Table | str] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)
    _folder: ClaimedFolder | None = None

    def path(self, number: int) -> str:
        """Where chunk `number` is stored when it does not stay in memory."""
        if self._folder is None:
            self._folder = scratch_folder()
        return os.path.join(self._folder.path, f"{number}.arrow")

    def mapped(self, name: str, values: Values) -> Values:
        """The same column where the chunks are: what of it was read, the system can take the memory of back."""
        if self._folder is None or not len(values):
            return values
        return store_column(values, self._folder.path, name).open()

    def keep(self, columns: dict[str, Values]) -> dict[str, Column]:
        """Move columns of the whole trace to where the chunks are."""
        if self._folder is None:
            return dict(columns)
        folder = self._folder.path
        return {name: store_column(values, folder, name) for name, values in columns.items()}

    def close(self) -> None:
        """Remove everything."""
        self.chunks.clear()
        if self._folder is not None:
            self._folder.remove()
            self._folder = None
