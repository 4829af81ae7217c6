"""An import that goes beside the run that was named says why, and when --add would have put it there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from explorer.cli.main import main


def trace(folder: Path, rank: int) -> str:
    row = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 1, "dur": 2}
    path = folder / f"r{rank}.json"
    path.write_text(json.dumps({"distributedInfo": {"rank": rank}, "traceEvents": [row]}))
    return str(path)


def said(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return [line for line in capsys.readouterr().err.splitlines() if "rows/s" not in line]


def test_a_new_rank_is_told_of_add(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = str(tmp_path / "a1")
    assert main(["import", trace(tmp_path, 0), "-o", run]) == 0
    (only,) = said(capsys)
    assert only.startswith("run: ")
    assert main(["import", trace(tmp_path, 1), "-o", run]) == 0
    hint, where = said(capsys)
    assert hint == f"{run} holds a run without rank 1; --add puts it there."
    assert where.endswith("a1-2")
    assert main(["import", trace(tmp_path, 1), "-o", run, "--add"]) == 0
    (only,) = said(capsys)
    assert only.endswith("a1")


def test_a_rank_that_is_there_is_not(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = str(tmp_path / "a1")
    for _ in range(2):
        assert main(["import", trace(tmp_path, 0), "-o", run]) == 0
    hint, where = said(capsys)[1:]
    assert hint == f"{run} holds rank 0 already."
    assert where.endswith("a1-2")


def test_a_rank_whose_manifest_is_broken_is_not_written_over(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "a1"
    assert main(["import", trace(tmp_path, 0), trace(tmp_path, 1), "-o", str(run)]) == 0
    broken = run / "manifests" / "rank-1.json"
    broken.write_text("{")
    assert main(["import", trace(tmp_path, 2), "-o", str(run), "--add"]) == 0
    capsys.readouterr()
    assert main(["import", trace(tmp_path, 1), "-o", str(run), "--add"]) != 0
    assert "bug" not in capsys.readouterr().err
    assert broken.read_text() == "{"
    assert sorted(path.name for path in run.glob("manifests/*.json")) == [f"rank-{n}.json" for n in (0, 1, 2)]
    assert not (tmp_path / "a1-2").exists()
