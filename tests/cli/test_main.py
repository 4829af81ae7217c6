"""Verbs are found, errors are one line with the right exit code, and starting costs nothing heavy."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import explorer
from explorer.cli import main as cli

HEAVY = ("torch", "duckdb", "pandas", "pyarrow", "textual", "numpy", "plotly", "rich", "typer")


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the command line in its own process."""
    return subprocess.run(
        [sys.executable, "-m", "explorer.cli.main", *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, **environment},
    )


@pytest.mark.parametrize("option", ["--help", "-h", "help"])
def test_help_lists_every_verb(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([option]) == 0
    out = capsys.readouterr().out
    assert all(f"  {verb} " in out for verb in cli.VERBS)
    assert max(len(line) for line in out.splitlines()) <= 120


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out == f"neuron-explorer {explorer.__version__}\n"


@pytest.mark.parametrize("arguments", [["--help"], ["--version"]])
def test_help_and_version_load_nothing_heavy(arguments: list[str]) -> None:
    code = (
        "import sys; from explorer.cli.main import main; main(sys.argv[1:]);"
        f"print('LOADED', [m for m in {HEAVY!r} if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.splitlines()[-1] == "LOADED []"


@pytest.mark.parametrize("verb", list(cli.VERBS))
def test_every_verb_explains_itself_without_loading_the_heavy_parts(verb: str) -> None:
    code = (
        "import sys; from explorer.cli.main import main; code = main(sys.argv[1:]);"
        "print('LOADED', code, [m for m in ('torch', 'duckdb', 'pandas', 'pyarrow', 'textual') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, verb, "--help"], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.splitlines()[-1] == "LOADED 0 []"
    assert f"Usage: neuron-explorer {verb}" in done.stdout
    assert len(done.stdout.split()) > 20


def test_reading_verbs_have_json() -> None:
    reading = [
        name for name, verb in cli.VERBS.items() if verb.group in ("Read", "Compare") and name != "open"
    ]
    assert not [name for name in reading if "--json" not in cli.verb_options(name)]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["docter"], 2, "docter is neither a verb nor a path. Did you mean: neuron-explorer doctor?"),
        (["--nonsense"], 2, "Unknown option --nonsense."),
        (["doctor", "--nonsense"], 2, "See neuron-explorer doctor --help."),
        (["schema", "event"], 2, "There is no table or view event. Did you mean events?"),
        (["verify", "/no/such/run"], 3, "/no/such/run does not exist."),
        (["verify"], 2, "See neuron-explorer verify --help."),
    ],
)
def test_errors_are_one_line_on_stderr(
    arguments: list[str], code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(arguments) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    assert said in captured.err
    assert captured.err.startswith("neuron-explorer: ")
    assert captured.err.count("\n") == 1


def test_an_unexpected_error_is_one_line_and_a_report(tmp_path: Path) -> None:
    code = (
        "import sys, explorer.cli.doctor as d, explorer.cli.machine as m\n"
        "def broken(): raise RuntimeError('two\\nlines')\n"
        "m.examine = broken\n"
        "from explorer.cli.main import main; sys.exit(main(['doctor']))"
    )
    environment = {**os.environ, "XDG_STATE_HOME": str(tmp_path)}
    environment.pop("NE_DEBUG", None)
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, env=environment, check=False
    )
    assert done.returncode == 3
    assert done.stderr.count("\n") == 1
    assert "RuntimeError: two lines. This is a bug." in done.stderr
    (report,) = (tmp_path / "neuron-explorer").iterdir()
    assert str(report) in done.stderr
    text = report.read_text()
    assert "Traceback" in text
    assert "arguments: ['doctor']" in text
    shown = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=60,
        env={**environment, "NE_DEBUG": "1"},
        check=False,
    )
    assert "Traceback" in shown.stderr


def test_a_closed_pipe_is_quiet() -> None:
    program = f"{sys.executable} -m explorer.cli.main schema --json | head -c 10"
    done = subprocess.run(["bash", "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == '{\n "schema'
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("end", "code", "said"),
    [
        ("| head -0", 0, ""),
        (">&-", 0, ""),
        ("> /dev/full", 2, "neuron-explorer: Cannot write the output: No space left on device. Free some"),
    ],
)
def test_an_output_that_takes_nothing(end: str, code: int, said: str) -> None:
    sample = Path(__file__).resolve().parents[2] / "sample_traces" / "transformer"
    program = f"{sys.executable} -m explorer.cli.main"
    lines = f"lines {sample} --limit 0"
    for verb in (lines, f"{lines} --json", "--help", "--version", "help lines", "lines --help"):
        done = subprocess.run(
            ["bash", "-c", f"{program} {verb} {end}; exit ${{PIPESTATUS[0]}}"],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert (done.returncode, done.stderr[: len(said)]) == (code, said)
        assert "bug" not in done.stderr


def test_a_gate_whose_outcome_nobody_reads_has_not_passed() -> None:
    sample = Path(__file__).resolve().parents[2] / "sample_traces" / "transformer"
    program = f"{sys.executable} -m explorer.cli.main check {sample} --max-memory 1GB | head -0"
    done = subprocess.run(
        ["bash", "-c", f"{program}; exit ${{PIPESTATUS[0]}}"], capture_output=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (141, b"")


def test_unencodable_names_do_not_end_the_program() -> None:
    done = run("schema", "breakdown", PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert done.returncode == 0
    assert "wall_ns" in done.stdout


def test_schema_json_names_every_table_and_view() -> None:
    from explorer.analysis.view import all_views
    from explorer.model.tables import TABLES

    done = run("schema", "--json")
    document = json.loads(done.stdout)
    assert next(iter(document)) == "schema"
    assert document["schema"] == "neuron-explorer/schema/1"
    assert {entry["name"] for entry in document["tables"]} >= set(TABLES) | set(all_views())
    assert all(column["doc"] for entry in document["tables"] for column in entry["columns"])


@pytest.mark.parametrize(
    ("piece", "plain"),
    [
        ("{RUN}", "RUN"),
        ("{SRC...}...", "SRC..."),
        ("{-- PROGRAM [ARGUMENT]...}...", "-- PROGRAM [ARGUMENT]..."),
        ("[[RUN]...]...", "[RUN]..."),
        ("[FILE]", "[FILE]"),
        ("[OPTIONS]", "[OPTIONS]"),
    ],
)
def test_usage_has_no_parser_marks(piece: str, plain: str) -> None:
    assert cli.plain_usage(piece) == plain


def test_a_path_opens_the_terminal_ui_and_a_dot_tells_it_from_a_verb(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from tests.cli.small_run import write_small_run

    monkeypatch.chdir(tmp_path)
    write_small_run(tmp_path / "summary")
    for path in ("./summary", str(tmp_path / "summary")):
        assert cli.main([path]) == 2
        assert "The terminal UI needs a terminal." in capsys.readouterr().err
    assert cli.main(["summary"]) == 2
    assert "See neuron-explorer summary --help." in capsys.readouterr().err
    assert cli.main(["./missing"]) == 3
    assert "./missing does not exist." in capsys.readouterr().err


def test_a_screen_is_drawn_without_a_terminal(tmp_path: Path) -> None:
    from tests.cli.small_run import write_small_run

    run_path = str(write_small_run(tmp_path / "run"))
    picture = tmp_path / "overview.svg"
    assert cli.main([run_path, "--screenshot", str(picture), "--screen", "overview"]) == 0
    assert picture.read_text().startswith("<svg")
