"""A file into which a tool merged several ranks becomes one rank each again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from explorer.analysis.run import open_run
from explorer.collectors.import_trace import import_trace
from explorer.collectors.options import ImportOptions
from tests.traces import trace


def event(rank: int | None, pid: int, ts: float, **args: Any) -> dict[str, Any]:
    said = {} if rank is None else {"rank": rank, "pid_raw": pid % 100, "correlation_raw": 7}
    return {
        "ph": "X", "cat": "kernel", "name": "k", "pid": pid, "tid": 7, "ts": ts, "dur": 2,
        "args": {"device": 0, "stream": 7, "correlation": 7, **said, **args},
    }  # fmt: skip


def merged(rows: list[dict[str, Any]], folder: Path) -> Path:
    path = folder / "merged.json"
    path.write_text(
        json.dumps({"distributedInfo": {"rank": 3, "world_size": 2}, "traceEvents": rows, "traceName": "m"})
    )
    return path


ROWS = [
    {"ph": "M", "name": "process_name", "pid": 101, "args": {"name": "second"}},
    event(0, 1, 10), event(1, 101, 11), event(0, 1, 20), event(None, 101, 21), event(None, 999, 30),
]  # fmt: skip


def test_rows_go_to_the_rank_they_name(tmp_path: Path) -> None:
    report = import_trace(merged(ROWS, tmp_path), tmp_path / "run")
    assert (report.ranks, report.exit_code) == ([0, 1], 0)
    with open_run(report.directory) as run:
        rows = run.sql("SELECT rank, start_ns FROM events ORDER BY rank, start_ns").rows()
        names = run.sql(
            "SELECT DISTINCT rank, process_name FROM tracks WHERE process_name IS NOT NULL"
        ).rows()
        manifests = run.reader.manifests
    assert [(row["rank"], row["start_ns"]) for row in rows] == [
        (0, 10_000), (0, 20_000), (0, 30_000), (1, 11_000), (1, 21_000),
    ]  # fmt: skip
    assert [(row["rank"], row["process_name"]) for row in names] == [(1, "second")]
    assert sum(manifest.counts["source_total"] for manifest in manifests.values()) == len(ROWS)
    assert {manifest.inputs[0]["rank_from"] for manifest in manifests.values()} == {"merged file"}
    assert all(manifest.inputs[0]["path"].endswith("merged.json") for manifest in manifests.values())


def test_one_rank_or_damage_is_left_as_it_is(tmp_path: Path) -> None:
    path = merged([event(2, 1, 10), event(2, 1, 20)], tmp_path)
    assert import_trace(path, tmp_path / "one").ranks == [3]
    path = merged(ROWS, tmp_path)
    path.write_bytes(path.read_bytes()[:-60])
    report = import_trace(path, tmp_path / "cut")
    assert (report.ranks, report.exit_code) == ([3], 4)


def test_a_given_rank_takes_the_file_as_it_is(tmp_path: Path) -> None:
    report = import_trace(merged(ROWS, tmp_path), tmp_path / "run", options=ImportOptions(rank=5))
    assert (report.ranks, report.events) == ([5], 5)


def test_a_real_merged_trace(tmp_path: Path) -> None:
    report = import_trace(trace("amd/amdhpc_merged_nccl_only.json.gz"), tmp_path / "run")
    assert (report.ranks, report.events, report.rows) == ([0, 1, 2, 3], 168, 176)
