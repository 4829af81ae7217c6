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


@pytest.mark.parametrize("screen", ["overview", "timeline"])
@pytest.mark.parametrize("how", ["missing", "cut"])
def test_the_terminal_ui_says_what_is_left_out(
    how: str, screen: str, run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    picture = tmp_path / "picture.svg"
    arguments = ["open", str(run), "--screenshot", str(picture), "--screen", screen, "--size", "80x24"]
    assert cli.main(arguments) == 0
    assert "error" not in picture.read_text()
    assert capsys.readouterr().err == ""
    file = part(run, "memory_events")
    if how == "missing":
        shutil.rmtree(file.parent)
    else:
        file.write_bytes(file.read_bytes()[:-9])
    assert cli.main(arguments) == EXIT_PARTIAL
    assert "1&#160;error" in picture.read_text()
    assert capsys.readouterr().err.startswith("1 file of the run missing or cut: 4 rows are left out; ")


def test_a_damaged_baseline_is_said(
    whole: Path, run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    part(run, "memory_events").unlink()
    arguments = ["open", str(whole), "--baseline", str(run), "--screen", "compare"]
    assert cli.main([*arguments, "--screenshot", str(tmp_path / "picture.svg")]) == EXIT_PARTIAL
    assert "1 file of the run missing or cut" in capsys.readouterr().err


@pytest.fixture(scope="module")
def two_ranks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ranks") / "run"
    for rank in (0, 1):
        write_small_run(folder, rank=rank)
    return folder


@pytest.mark.parametrize("verb", READING)
def test_a_broken_manifest_costs_its_rank(
    verb: str, two_ranks: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    shutil.copytree(two_ranks, run)
    (run / manifest_path(1)).write_text("{")
    assert cli.main([verb, str(run), "--json"]) == EXIT_PARTIAL
    out = capsys.readouterr()
    json.loads(out.out)
    assert out.err == (
        f"The manifest of rank 1 cannot be read: it is left out; details: neuron-explorer verify {run}\n"
    )


def test_health_and_verify_name_the_broken_manifest(
    two_ranks: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    shutil.copytree(two_ranks, run)
    (run / manifest_path(1)).write_text("{")
    assert cli.main(["health", str(run), "--json"]) == EXIT_PARTIAL
    first = json.loads(capsys.readouterr().out)["rows"][0]
    assert (first["kind"], first["severity"], first["rank"]) == ("unreadable_manifest", "error", 1)
    assert cli.main(["verify", str(run)]) == EXIT_UNREADABLE
    assert "manifests/rank-1.json: cannot be read" in capsys.readouterr().out
    assert cli.main(["ops", str(run), "--rank", "1"]) == EXIT_UNREADABLE
    assert "rank-1.json cannot be read" in capsys.readouterr().err


def test_findings_and_metrics_of_a_damaged_run_say_so(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    part(run, "memory_events").unlink()
    assert cli.main(["bottlenecks", str(run), "--json"]) == EXIT_PARTIAL
    assert json.loads(capsys.readouterr().out)["health"][0]["kind"] == "damaged_file"
    assert cli.main(["export", str(run), "-o", str(tmp_path / "run.prom")]) == EXIT_PARTIAL
    assert 'kind="damaged_file"' in (tmp_path / "run.prom").read_text()
