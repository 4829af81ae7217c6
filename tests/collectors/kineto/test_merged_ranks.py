"""A file into which a tool merged several ranks becomes one rank each again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from explorer.analysis.run import open_run
from explorer.collectors.cluster_import import import_on_cluster
from explorer.collectors.import_trace import import_trace
from explorer.collectors.kineto.merged import split_ranks
from explorer.collectors.options import ImportOptions
from explorer.collectors.source import open_source
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


def test_one_rank_is_left_as_it_is(tmp_path: Path) -> None:
    path = merged([event(2, 1, 10), event(2, 1, 20)], tmp_path)
    assert import_trace(path, tmp_path / "one").ranks == [3]


def test_a_given_rank_takes_the_file_as_it_is(tmp_path: Path) -> None:
    report = import_trace(merged(ROWS, tmp_path), tmp_path / "run", options=ImportOptions(rank=5))
    assert (report.ranks, report.events) == ([5], 5)


def test_a_real_merged_trace(tmp_path: Path) -> None:
    report = import_trace(trace("amd/amdhpc_merged_nccl_only.json.gz"), tmp_path / "run")
    assert (report.ranks, report.events, report.rows) == ([0, 1, 2, 3], 168, 176)


DAMAGE = {
    "no number": (lambda text: text.replace('"dur": 2,', '"dur": NaN,', 2), 4, [0, 1]),
    "lone surrogate": (lambda text: text.replace('"name": "k"', r'"name": "\ud800"', 1), 4, [0, 1]),
    "cut off": (lambda text: text[:-60], 4, [0, 1]),
    "ranks as texts": (lambda text: text.replace('"rank": 0', '"rank": "0"').replace('"rank": 1', '"rank": "1"'), 0, [0, 1]),
    "one rank": (lambda text: text.replace('"rank": 1', '"rank": 0').replace('"rank": 3', '"x": 3').replace('"rank": 0', '"rank": 3'), 0, [3]),
}  # fmt: skip


@pytest.mark.parametrize("kind", DAMAGE)
def test_ranks_stay_apart_whatever_is_damaged(tmp_path: Path, kind: str) -> None:
    damage, code, ranks = DAMAGE[kind]
    path = merged(ROWS, tmp_path)
    text = damage(path.read_text())
    assert text != path.read_text()
    path.write_text(text)
    report = import_trace(path, tmp_path / "run")
    assert (report.ranks, report.exit_code) == (ranks, code)
    with open_run(report.directory) as run:
        rows = run.sql("SELECT rank, start_ns FROM events WHERE start_ns = 11000").rows()
        said = run.sql("SELECT kind FROM health WHERE rank = 0 AND kind <> 'unlinked_kernels'").rows()
        quarantined = run.sql("SELECT count(*) AS rows FROM quarantine").rows()
    assert [row["rank"] for row in rows] == [ranks[-1]]
    assert bool({"repaired_text", "truncated"} & {row["kind"] for row in said}) == (code == 4)
    if kind == "cut off":
        assert {"truncated", "unreadable_text"} <= {row["kind"] for row in said}
        assert quarantined == [{"rows": 1}]


def test_ranks_that_stay_together_are_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("explorer.collectors.kineto.merged._MOST_RANKS", 1)
    report = import_trace(merged(ROWS, tmp_path), tmp_path / "run")
    assert (report.ranks, report.events, report.exit_code) == ([3], 5, 4)
    with open_run(report.directory) as run:
        said = run.sql("SELECT message FROM health WHERE kind = 'several_ranks'").rows()
    assert ["0, 1" in row["message"] for row in said] == [True]


def test_one_worker_per_file_says_that_ranks_stay_together(tmp_path: Path) -> None:
    path = merged(ROWS, tmp_path)
    report = import_on_cluster([path], tmp_path / "run", None)
    assert (report.ranks, report.exit_code) == ([3], 4)


def test_many_ranks_need_few_open_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("explorer.collectors.kineto.merged._HELD_BYTES", 1000)
    (source,) = open_source(merged([event(n % 40, n % 40, n) for n in range(200)], tmp_path))
    found = split_ranks(source, str(tmp_path))
    assert found.ranks == list(range(40))
    for rank, path in found.paths.items():
        assert [row["ts"] for row in json.loads(Path(path).read_text())["traceEvents"]] == list(
            range(rank, 200, 40)
        )
