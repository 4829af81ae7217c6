"""Decoded chunks on their way from reading to writing: in memory while they are few, in a scratch folder after that."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.ipc as ipc

from explorer.collectors.claimed_folder import ClaimedFolder, scratch_folder
from explorer.collectors.kineto.rows import SCHEMA

_OPTIONS = ipc.IpcWriteOptions(compression="lz4")


def store(rows: pa.Table, path: str) -> None:
    """Write a chunk to the scratch folder. Columns without any value are left out."""
    rows = rows.select([name for name in rows.column_names if rows.column(name).null_count < rows.num_rows])
    with pa.OSFile(path, "wb") as file, ipc.new_file(file, rows.schema, options=_OPTIONS) as writer:
        writer.write_table(rows)


def load(stored: pa.Table | str) -> pa.Table:
    """A chunk, from memory or from the scratch folder."""
    if isinstance(stored, pa.Table):
        return stored
    with pa.OSFile(stored, "rb") as file:
        rows = ipc.open_file(file).read_all()
    known = set(rows.column_names)
    columns = [rows.column(f.name) if f.name in known else pa.nulls(len(rows), f.type) for f in SCHEMA]
    return pa.table(columns, SCHEMA)


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

    def close(self) -> None:
        """Remove everything."""
        self.chunks.clear()
        if self._folder is not None:
            self._folder.remove()
            self._folder = None
