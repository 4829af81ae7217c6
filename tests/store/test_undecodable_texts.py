"""File names and arguments that are not UTF-8 are kept, escaped: in tables, in the manifest, and in whole recordings."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from explorer.collectors.capture.source_paths import SourcePaths
from explorer.collectors.import_trace import cached_run
from explorer.model.utf8_text import utf8_text
from explorer.store.reader import RunReader
from explorer.store.writer import RunWriter


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("plain", "plain"),
        ("\u00e9\U0001f600\0", "\u00e9\U0001f600\0"),
        ("bad\udcff.py", "bad\\xff.py"),
        ("\u00e9\udc80", "\u00e9\\x80"),
        ("\ud800\u00e9", "\\ud800\u00e9"),
    ],
)
def test_what_has_no_utf8_form_is_escaped(text: str, stored: str) -> None:
    assert utf8_text(text) == stored


def test_tables_and_the_manifest_hold_the_escaped_text(tmp_path: Path) -> None:
    with RunWriter(tmp_path / "run") as writer:
        writer.manifest.command = ["python", "bad\udcff.py"]
        writer.manifest.host = {"na\udc80me": ["x\ud800", 3]}
        writer.write("quarantine", {"row": ["a", "b\udcff"], "reason": ["odd", "odd"], "offset": [None, 4]})
    run = RunReader(tmp_path / "run")
    assert run.read("quarantine").column("row").to_pylist() == ["a", "b\\xff"]
    assert run.manifests[0].command == ["python", "bad\\xff.py"]
    assert run.manifests[0].host == {"na\\x80me": ["x\\ud800", 3]}


def test_a_file_has_one_name_everywhere(tmp_path: Path) -> None:
    paths = SourcePaths(str(tmp_path))
    assert paths.name(str(tmp_path / "bad\udcff.py")) == "bad\\xff.py"
    assert paths.files == {"bad\\xff.py": str(tmp_path / "bad\udcff.py")}


@pytest.mark.skipif(sys.platform != "linux", reason="file names are bytes on Linux alone")
def test_a_program_whose_name_is_not_utf8_is_recorded(tmp_path: Path) -> None:
    program = tmp_path / "bad\udcff.py"
    program.write_text(
        "import torch\nfor step in range(3):\n    torch.ones(4) + step\nprint(ascii(__file__[-7:]))\n"
    )
    run = tmp_path / "run"
    command: list[str | Path] = [
        sys.executable,
        "-m",
        "explorer.cli.main",
        "record",
        "-o",
        run,
        "--",
        sys.executable,
        program,
        "a\udcfe",
    ]
    done = subprocess.run(command, capture_output=True, check=False, cwd=tmp_path, env=dict(os.environ))
    assert (done.returncode, done.stdout) == (0, b"'bad\\udcff.py'\n"), done.stderr
    reader = RunReader(run)
    assert reader.manifests[0].command[-2:] == [str(tmp_path / "bad\\xff.py"), "a\\xfe"]
    assert set(reader.read("sites").column("file").to_pylist()) == {"bad\\xff.py"}
    assert reader.read("sources").column("text").to_pylist() == [program.read_text()]


@pytest.mark.skipif(sys.platform != "linux", reason="file names are bytes on Linux alone")
def test_a_trace_whose_name_is_not_utf8_is_cached(tmp_path: Path) -> None:
    folder = tmp_path / "d\udcfe"
    folder.mkdir()
    source = folder / "tr\udcff.json"
    source.write_text('{"traceEvents": [{"ph": "X", "name": "a", "pid": 1, "tid": 1, "ts": 1, "dur": 2}]}')
    for path in (source, folder):
        run = cached_run(path, cache_dir=str(tmp_path / "cache"))
        assert RunReader(run).manifests[0].inputs[0]["path"].endswith("d\\xfe/tr\\xff.json")
        assert cached_run(path, cache_dir=str(tmp_path / "cache")) == run
