"""What a run lacks by its manifests, as rows of its health: files that are missing or cut, ranks whose manifest cannot be
read, ranks of the job that are not there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from explorer.analysis.absent_ranks import absent_ranks, absent_text
from explorer.analysis.result import Result
from explorer.store.manifest import manifest_path
from explorer.store.reader import RunReader

_WEIGHT = {"error": 0, "warning": 1, "info": 2}


def lacking(reader: RunReader) -> list[dict[str, Any]]:
    """Health rows of what is not there, worst first. Looks at manifests and sizes of files only."""
    rows = [
        _row(
            rank,
            "unreadable_manifest",
            "error",
            1,
            f"{manifest_path(rank)} cannot be read ({reason}): rank {rank} is left out",
            "Copy the run again from where it is whole",
            "everything",
        )
        for rank, reason in reader.unreadable.items()
    ]
    rows += [
        _row(
            rank,
            "damaged_file",
            "error",
            part.rows,
            f"{part.path} {what}: {part.rows:,} rows of {part.table} are left out",
            "Copy the run again from where it is whole",
            "everything",
        )
        for rank, part, what in reader.damaged
    ]
    if gaps := absent_ranks(reader):
        rows.append(
            _row(
                gaps[0][0],
                "missing_ranks",
                # The trace of one rank of a job is often all that is wanted.
                "warning" if len(reader.ranks) > 1 else "info",
                sum(last - first + 1 for first, last in gaps),
                absent_text(reader),
                "Import the traces of all ranks together, or add these with import --add",
                "ranks",
            )
        )
    return rows


def with_lacking(health: Result, reader: RunReader) -> Result:
    """The health rows with those of what the run lacks, each before the others of its severity."""
    import pyarrow as pa

    rows = health.rows()
    for lack in reversed(found := lacking(reader)):
        rows.insert(_place(rows, lack["severity"]), lack)
    if not found:
        return health
    return Result(pa.Table.from_pylist(rows, schema=health.arrow().schema), health.schema, health.sql)


def _place(rows: Sequence[dict[str, Any]], severity: str) -> int:
    places = (
        place
        for place, row in enumerate(rows)
        if row["kind"] != "neuron_warning" and _WEIGHT.get(row["severity"], 2) >= _WEIGHT[severity]
    )
    return next(places, len(rows))


def _row(
    rank: int, kind: str, severity: str, count: int, message: str, remedy: str, affects: str
) -> dict[str, Any]:
    return {
        "rank": rank,
        "kind": kind,
        "severity": severity,
        "count": count,
        "message": message,
        "remedy": remedy,
        "affects": affects,
    }
