"""Runs made from traces, for the tests of importers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from explorer.collectors.import_trace import ImportReport, import_trace
from explorer.store.manifest import Manifest
from explorer.store.reader import RunReader


class Imported:
    """An imported trace: its report and its tables as lists of rows."""

    def __init__(self, sources: Any, folder: Path) -> None:
        self.report: ImportReport = import_trace(sources, folder / "run")
        self.reader = RunReader(self.report.directory)

    @property
    def manifest(self) -> Manifest:
        return self.reader.manifests[self.reader.ranks[0]]

    def rows(self, table: str, **wanted: Any) -> list[dict[str, Any]]:
        """Rows of a table whose columns have the wanted values."""
        found: list[dict[str, Any]] = self.reader.read(table).to_pylist()
        return [row for row in found if all(row[name] == value for name, value in wanted.items())]

    def health(self) -> dict[str, int]:
        """Count by kind."""
        return {row["kind"]: row["count"] for row in self.rows("health")}

    def check_counts(self) -> None:
        """Every source row is accounted for, and the tables hold what the manifest says."""
        counts = self.manifest.counts
        kept = sum(count for name, count in counts.items() if name not in ("source_total", "derived"))
        assert kept == counts["source_total"] + counts["derived"]
        for table in ("events", "counters", "memory_events", "source_rows", "quarantine"):
            assert self.reader.read(table).num_rows == counts[table], table
        assert "counts_differ" not in self.health()


def union_ns(rows: list[dict[str, Any]]) -> int:
    """Length of the union of intervals."""
    total, reached = 0, -(2**63)
    for row in sorted(rows, key=lambda row: row["start_ns"]):
        end = row["start_ns"] + row["duration_ns"]
        total += max(0, end - max(row["start_ns"], reached))
        reached = max(reached, end)
    return total
