"""A run with a lost or damaged file: what is whole is shown, what is not is said, and nobody is told of a bug."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from explorer.cli import main as cli
from explorer.cli.main import VERBS
from explorer.model.errors import EXIT_PARTIAL, EXIT_UNREADABLE
from explorer.store.manifest import manifest_path
from tests.cli.small_run import write_small_run

READING = [
    n for n, v in VERBS.items() if v.group == "Read" and n not in ("open", "query", "source", "what-if")
]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(write_small_run(tmp_path_factory.mktemp("whole") / "run"))


@pytest.fixture
def run(whole: Path, tmp_path: Path) -> Path:
    shutil.copytree(whole, tmp_path / "run")
    return tmp_path / "run"


def part(run: Path, table: str) -> Path:
    return sorted(run.glob(f"{table}/*/*.parquet"))[0]


@pytest.mark.parametrize("how", ["missing", "cut"])
@pytest.mark.parametrize("verb", READING)
def test_what_is_whole_is_shown(verb: str, how: str, run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = part(run, "host_states") if list(run.glob("host_states/*/*")) else part(run, "sites")
    if how == "missing":
        file.unlink()
    else:
        file.write_bytes(file.read_bytes()[:-9])
    assert cli.main([verb, str(run), "--json"]) == EXIT_PARTIAL
    out = capsys.readouterr()
    assert next(iter(json.loads(out.out))) == "schema"
    assert out.err.startswith("1 file of the run missing or cut: ")
    assert len(out.err.splitlines()) == 1


def test_health_names_the_file_that_is_left_out(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = part(run, "events")
    file.unlink()
    assert cli.main(["health", str(run), "--json"]) == EXIT_PARTIAL
    first = json.loads(capsys.readouterr().out)["rows"][0]
    assert (first["kind"], first["severity"]) == ("damaged_file", "error")
    assert str(file.relative_to(run)) in first["message"]


@pytest.mark.parametrize("verb", [*(verb for verb in READING if verb != "memory"), "report"])
def test_wrong_bytes_are_one_line(
    verb: str, run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = part(run, "events")
    file.write_bytes(b"x" * file.stat().st_size)
    extra = ["-o", str(tmp_path / "report.html")] if verb == "report" else []
    assert cli.main([verb, str(run), *extra]) == EXIT_UNREADABLE
    err = capsys.readouterr().err
    assert len(err.splitlines()) == 1
    assert "is damaged" in err
    assert "neuron-explorer verify" in err
    assert "bug" not in err


def test_wrong_bytes_in_a_query_are_unreadable_input(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = part(run, "events")
    file.write_bytes(b"x" * file.stat().st_size)
    assert cli.main(["query", str(run), "SELECT count(DISTINCT name) FROM events"]) in (2, EXIT_UNREADABLE)
    assert "bug" not in capsys.readouterr().err


@pytest.mark.parametrize("path", ["../outside.parquet", "/etc/passwd", "events/../../outside.parquet"])
def test_a_manifest_that_points_outside_is_refused(
    path: str, run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    manifest = run / manifest_path(0)
    content = json.loads(manifest.read_bytes())
    content["parts"][0]["path"] = path
    manifest.write_text(json.dumps(content))
    assert cli.main(["ops", str(run)]) == EXIT_UNREADABLE
    assert "names a file outside the run" in capsys.readouterr().err
