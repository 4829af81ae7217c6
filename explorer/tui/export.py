"""Writes a query's answer to a file, by its ending."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from explorer.model.errors import UsageError

if TYPE_CHECKING:
    from explorer.analysis.result import Result


def export_result(result: Result, path: str) -> str:
    """Write CSV, Parquet or JSON; returns what was done. Raises UsageError for another ending or an unwritable file."""
    path = os.path.expanduser(path)
    ending = os.path.splitext(path)[1].lower()
    table = result.arrow()
    try:
        if ending == ".csv":
            import pyarrow.csv as pacsv

            pacsv.write_csv(table, path)
        elif ending == ".parquet":
            import pyarrow.parquet as pq

            pq.write_table(table, path)
        elif ending == ".json":
            with open(path, "w", encoding="utf-8") as file:
                file.write(result.to_json(indent=1))
        else:
            raise UsageError(f"{path} does not end in .csv, .parquet or .json.", "Name the file so.")
    except OSError as error:
        raise UsageError(
            f"Cannot write {path}: {error.strerror or error}.", "Choose another file."
        ) from error
    return f"Wrote {len(result):,} rows to {path}"
