"""Files of a run that are left out because they are missing or cut, as rows of its health."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from explorer.analysis.result import Result
from explorer.store.manifest import Part


def with_damage(health: Result, damaged: Sequence[tuple[int, Part, str]]) -> Result:
    """The health rows with one more for each damaged part, worst first."""
    rows = [
        {
            "rank": rank,
            "kind": "damaged_file",
            "severity": "error",
            "count": part.rows,
            "message": f"{part.path} {what}: {part.rows:,} rows of {part.table} are left out",
            "remedy": "Copy the run again from where it is whole",
            "affects": "everything",
        }
        for rank, part, what in damaged
    ]
    table = health.arrow()
    added = pa.Table.from_pylist(rows, schema=table.schema)
    return Result(pa.concat_tables([added, table]), health.schema, health.sql)
