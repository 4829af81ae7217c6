"""Any table or view of a run as a CSV or Parquet file."""

from __future__ import annotations

import difflib
import os
from typing import TYPE_CHECKING

from explorer.model.errors import UsageError
from explorer.report.whole_file import whole_file

if TYPE_CHECKING:
    from explorer.analysis.run import Run


def table_names(run: Run) -> list[str]:
    """Every name that can be written."""
    return sorted(run.engine.relations.names())


def write_table(run: Run, name: str, path: str | os.PathLike[str], kind: str) -> int:
    """Write all rows of a table or view; returns how many. The file appears whole or not at all.

    Args:
        kind: csv or parquet.

    Raises UsageError for an unknown name, OSError when the file cannot be written.
    """
    known = table_names(run)
    if name not in known:
        near = difflib.get_close_matches(name, known, 3)
        raise UsageError(
            f"The run has no table or view {name!r}.",
            f"Did you mean {' or '.join(near)}?" if near else "See neuron-explorer schema.",
        )
    rows = run.view(name).arrow()
    # Given a name, the writer of Parquet would remove what it could not write: a device, too.
    with whole_file(path) as temporary, open(temporary, "wb") as file:
        if kind == "parquet":
            import pyarrow.parquet as pq

            pq.write_table(rows, file, compression="zstd")
        else:
            import pyarrow.csv

            pyarrow.csv.write_csv(rows, file)
    return int(rows.num_rows)
