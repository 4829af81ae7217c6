"""`import --cache-dir`: a source is read once, and again only when it has changed."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from explorer.analysis.run import open_run
from explorer.cli.main import main


def write_trace(path: Path, names: list[str]) -> None:
    events = [
        {"ph": "X", "cat": "cpu_op", "name": n, "pid": 1, "tid": 1, "ts": 10.0 * i, "dur": 5}
        for i, n in enumerate(names)
    ]
    path.write_text(json.dumps({"traceEvents": events}))


def imported(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["import", *arguments, "--json"]) == 0
    return str(json.loads(capsys.readouterr().out)["directory"])


def test_an_unchanged_source_is_imported_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace, cache = tmp_path / "t.json", tmp_path / "cache"
    write_trace(trace, ["a"])
    first = imported(capsys, str(trace), "--cache-dir", str(cache))
    assert Path(first).is_relative_to(cache)
    manifest = next(Path(first, "manifests").glob("rank-*.json"))
    written = manifest.stat().st_mtime_ns
    assert imported(capsys, str(trace), "--cache-dir", str(cache)) == first
    assert manifest.stat().st_mtime_ns == written
    write_trace(trace, ["a", "b"])
    assert imported(capsys, str(trace), "--cache-dir", str(cache)) != first


def test_an_output_is_a_run_of_its_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace, cache = tmp_path / "t.json", tmp_path / "cache"
    write_trace(trace, ["a", "b"])
    out = [
        imported(capsys, str(trace), "--cache-dir", str(cache), "-o", str(tmp_path / "run")) for _ in range(2)
    ]
    assert [os.path.basename(directory) for directory in out] == ["run", "run-2"]
    assert main(["cache", "clear", "--cache-dir", str(cache)]) == 0
    for directory in out:
        with open_run(directory) as run:
            assert [row["name"] for row in run.sql("SELECT name FROM events ORDER BY name").rows()] == [
                "a",
                "b",
            ]


def test_what_a_cache_cannot_do_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = tmp_path / "t.json"
    write_trace(trace, ["a"])
    assert main(["import", str(trace), "--cache-dir", str(tmp_path / "c"), "--rank", "3"]) == 2
    assert "--rank" in capsys.readouterr().err


def test_open_takes_another_cache(tmp_path: Path) -> None:
    trace, cache, picture = tmp_path / "t.json", tmp_path / "cache", tmp_path / "p.svg"
    write_trace(trace, ["a"])
    assert main(["open", str(trace), "--cache-dir", str(cache), "--screenshot", str(picture)]) == 0
    assert picture.exists()
    assert len(list((cache / "runs").iterdir())) == 1


def test_settings_hold_for_the_cache_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from explorer.collectors import import_trace

    given: list[int] = []
    one = import_trace._import_one

    def watched(item: Any, place: Any, options: Any, *rest: Any, **named: Any) -> None:
        given.append(options.memory_bytes)
        one(item, place, options, *rest, **named)

    monkeypatch.setattr(import_trace, "_import_one", watched)
    trace = tmp_path / "t.json"
    write_trace(trace, ["a"])
    imported(capsys, str(trace), "--cache-dir", str(tmp_path / "cache"), "--memory-mib", "500")
    assert given == [500 << 20]


@pytest.mark.parametrize("memory", ["383", "0", "-1"])
def test_a_setting_that_cannot_be_kept_is_refused(
    memory: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = tmp_path / "t.json"
    write_trace(trace, ["a"])
    assert main(["import", str(trace), "-o", str(tmp_path / "run"), "--memory-mib", memory]) == 2
    said = capsys.readouterr().err
    assert "--memory-mib" in said
    assert "384" in said
    assert not (tmp_path / "run").exists()
