"""The verb `export`: format by ending, windows, clear errors, exit codes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from explorer.cli.main import main

SAMPLE = str(Path(__file__).resolve().parents[2] / "sample_traces" / "transformer")


@pytest.mark.parametrize(
    ("name", "more", "start"),
    [
        ("x.json", [], b'{"schemaVersion"'),
        ("x.json.gz", ["--step", "2"], b"\x1f\x8b"),
        ("x.json", ["--from", "10", "--to", "20.5"], b'{"schemaVersion"'),
        ("x.speedscope.json", [], b'{"$schema"'),
        ("x.folded", [], b"<module>"),
        ("x.csv", ["--view", "steps"], b'"rank"'),
        ("x.parquet", ["--view", "kernels"], b"PAR1"),
        ("x.prom", [], b"# TYPE"),
        ("x.openmetrics", [], b"# TYPE"),
        ("x.metrics", [], b"# TYPE"),
        ("X.PQ", ["--view", "kernels"], b"PAR1"),
        ("x.collapsed", [], b"<module>"),
        ("x.speedscope", [], b'{"$schema"'),
        ("x.speedscope.json.gz", [], b"\x1f\x8b"),
        ("x.pt.trace.json", [], b'{"schemaVersion"'),
        ("trace", ["--format", "perfetto"], b'{"schemaVersion"'),
    ],
)
def test_every_format(tmp_path, capsys, name, more, start):
    path = tmp_path / name
    assert main(["export", SAMPLE, "-o", str(path), *more]) == 0
    assert path.read_bytes().startswith(start)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(f"{path}: ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-o", "x.txt"], "names no format. Known are: perfetto .json, .json.gz, .perfetto; speedscope"),
        (["-o", "x.html"], "The verb report writes HTML"),
        (["-o", "x.json", "--format", "pdf"], "no format 'pdf'"),
        (["-o", "x.csv"], "--view"),
        (["-o", "x.csv", "--view", "nothing"], "no table or view"),
        (["-o", "x.json", "--view", "lines"], "--view is for"),
        (["-o", "x.folded", "--weight", "heavy"], "no weight"),
        (["-o", "x.json", "--weight", "device"], "--weight is for"),
        (["-o", "x.folded", "--step", "1"], "A window"),
        (["-o", "x.json", "--step", "1", "--from", "3"], "either --step"),
        (["-o", "x.json", "--from", "3", "--to", "2"], "later"),
        (["-o", "x.json", "--step", "999"], "no step 999"),
        (["-o", "missing/x.json"], "Cannot write"),
    ],
)
def test_usage_errors(tmp_path, monkeypatch, capsys, arguments, message):
    monkeypatch.chdir(tmp_path)
    assert main(["export", SAMPLE, *arguments]) == 2
    assert message in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_standard_output_and_pipes_are_written_themselves(tmp_path):
    command = f"{sys.executable} -m explorer.cli.main export {SAMPLE} --view steps --format csv -o "
    shown = subprocess.run(
        ["bash", "-c", f"{command} - | head -1"], capture_output=True, text=True, check=True
    )
    assert shown.stdout.startswith('"rank","step"')
    os.mkfifo(tmp_path / "pipe")
    through = f"{command} {tmp_path}/pipe & head -1 {tmp_path}/pipe; wait"
    shown = subprocess.run(["bash", "-c", through], capture_output=True, text=True, check=True, timeout=60)
    assert shown.stdout.startswith('"rank","step"')
    assert [entry.name for entry in tmp_path.iterdir()] == ["pipe"]


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "link.csv").symlink_to(tmp_path / "real.csv")
    assert main(["export", SAMPLE, "--view", "steps", "-o", str(tmp_path / "link.csv")]) == 0
    assert (tmp_path / "link.csv").is_symlink()
    assert (tmp_path / "real.csv").read_bytes().startswith(b'"rank"')


def test_a_damaged_trace_is_exported_with_exit_code_4(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    source = tmp_path / "in.json"
    event = {"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 1, "dur": 2}
    source.write_text(json.dumps({"traceEvents": [event] * 3})[:-20])
    assert main(["export", str(source), "-o", str(tmp_path / "out.json")]) == 4
    rows = json.loads((tmp_path / "out.json").read_text())["traceEvents"]
    assert sum(row["ph"] == "X" for row in rows) == 2
