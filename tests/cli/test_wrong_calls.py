"""Calls that are wrong: one line that names the option, what was given and what is possible, and exit code 2."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from explorer.cli.main import main
from tests.cli.small_run import write_small_run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(write_small_run(tmp_path_factory.mktemp("wrong") / "run"))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["lines", "RUN", "-n", "-1"], "--limit must be at least 0, not -1. See neuron-explorer lines --help."),
        (["ops", "RUN", "-n", "many"], "--limit must be a whole number, not many. See neuron-explorer ops --help."),
        (["ops", "RUN", "-n", " "], "--limit must be a whole number, not ' '. See neuron-explorer ops --help."),
        (
            ["query", "RUN", "SELECT 1", "--timeout", "soon"],
            "--timeout must be a number, not soon. See neuron-explorer query --help.",
        ),
        (
            ["query", "RUN", "SELECT 1", "--format", "xml"],
            "--format must be one of table, csv, json, not xml. See neuron-explorer query --help.",
        ),
        (["mcp", "--port", "70000"], "--port must be at most 65535, not 70000. See neuron-explorer mcp --help."),
        (["lines", "RUN", "--step", "1"], "No such option: --step. See neuron-explorer lines --help."),
        (["report", "RUN", "-o", ""], "The value of --output is empty. Give one, or leave the option out."),
        (["diff", "RUN", "RUN", "--html", ""], "The value of --html is empty. Give one, or leave the option out."),
        (["what-if", "RUN", "--remove", ""], "The value of --remove is empty. Give one, or leave the option out."),
        (["demo", "-o", ""], "The value of --output is empty. Give one, or leave the option out."),
        (
            ["record", "-o", "", "--", "true"],
            "The value of --output is empty. Give one, or leave the option out.",
        ),
        (["kernels", "RUN", "--mode", "HTA"], "No mode of kernels is 'HTA'. Choose one of: native, hta, tracelens."),
        (["query", "RUN", "\udcff"], "The statement is not UTF-8."),
        (["schema", "EVENTS"], "There is no table or view EVENTS. Did you mean events?"),
        (
            ["bottlenecks", "RUN", "--set", "row_loop.passes=nan"],
            "'row_loop.passes=nan' is not RULE.SETTING=NUMBER. Such as: --set data_loader_stall.stall_share=0.1",
        ),
        (
            ["export", "RUN", "-o", "x.json", "--from", "nan"],
            "--from nan is no time of a recording. Give milliseconds from its begin.",
        ),
        (
            ["export", "RUN", "-o", "x.json", "--to", "-1e300"],
            "--to -1e+300 is no time of a recording. Give milliseconds from its begin.",
        ),
        (["export", "RUN", "-o", "x.json/", "--format", "perfetto"], "Cannot write x.json/: Is a directory. Choose another file with -o."),
        (
            ["export", "RUN", "-o", "no/x.csv", "--view", "ops"],
            "Cannot write no/x.csv: No such file or directory. Choose another file with -o.",
        ),
        (
            ["diff", "RUN", "RUN", "--html", "no/x.html"],
            "Cannot write no/x.html: No such file or directory. Choose another file with --html.",
        ),
        (["source", "RUN", "train.py:99"], "train.py has no line 99. It has 8."),
        (["critical-path", "RUN", "--rank", "7"], "RUN has no rank 7; it holds rank 0 only."),
        (["record", "--", ""], "There is no program to run. Try: neuron-explorer record -- python train.py"),
    ],
)  # fmt: skip
def test_one_line_says_what_is_wrong(
    arguments: list[str],
    said: str,
    run: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main([run if word == "RUN" else word for word in arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == f"neuron-explorer: {said.replace('RUN has', f'{run} has')}\n"
    assert not list(tmp_path.glob("x*"))


@pytest.mark.parametrize(
    "verb",
    ["lines", "ops", "kernels", "modules", "steps", "breakdown", "gaps", "launches", "roofline", "ranks"],
)
def test_a_limit_beyond_all_numbers_shows_all(
    verb: str, run: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([verb, run, "-n", "0"]) == 0
    everything = capsys.readouterr().out
    assert main([verb, run, "-n", str(10**30)]) == 0
    assert capsys.readouterr().out == everything


def test_a_query_without_bounds(run: str, capsys: pytest.CaptureFixture[str]) -> None:
    endless = ["--timeout", "inf", "-n", str(10**30)]
    assert main(["query", run, "SELECT count(*) AS n FROM steps", *endless]) == 0
    captured = capsys.readouterr()
    assert captured.out.split() == ["n", "2"]
    assert captured.err == ""


def test_a_place_as_tables_write_it_shows_what_is_around(
    run: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["source", run, "train.py:6"]) == 0
    shown = capsys.readouterr().out
    assert "loss = y.item()" in shown
    assert "import torch" in shown


def test_a_file_that_takes_no_more_stays_what_it_is(run: str, tmp_path: Path) -> None:
    """The writer of Parquet removes what it could not write, where it is given the name."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    sample = Path(__file__).resolve().parents[2] / "sample_traces" / "transformer"
    command = (
        f"{sys.executable} -m explorer.cli.main export {sample} -o {pipe} --format parquet --view events & "
        f"head -c 1 {pipe} > /dev/null; wait $!"
    )
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=100, check=False)
    assert (done.returncode, done.stderr) == (
        2,
        f"neuron-explorer: Cannot write {pipe}: Broken pipe. Choose another file with -o.\n",
    )
    assert pipe.is_fifo()


def test_the_demo_says_before_it_runs_that_nothing_can_be_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("torch")
    (tmp_path / "file").write_text("")
    assert main(["demo", "-o", str(tmp_path / "file")]) == 2
    assert capsys.readouterr().err == (
        f"neuron-explorer: Cannot write the run to {tmp_path}/file: File exists. Choose another directory with -o.\n"
    )


@pytest.mark.parametrize(
    ("arguments", "work", "remedy"),
    [
        (["report", "RUN", "-o", "PATH"], "explorer.report.html.html_report", "-o"),
        (
            ["export", "RUN", "-o", "PATH", "--format", "perfetto"],
            "explorer.report.perfetto.write_perfetto",
            "-o",
        ),
        (["diff", "RUN", "RUN", "--html", "PATH"], "explorer.analysis.diff.comparison.compare", "--html"),
    ],
)
@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("folder", "Is a directory"),
        ("folder/", "Is a directory"),
        ("missing/file", "No such file or directory"),
        ("file/below", "Not a directory"),
    ],
)
def test_what_cannot_be_written_is_said_before_the_work(
    arguments: list[str],
    work: str,
    remedy: str,
    path: str,
    why: str,
    run: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("folder").mkdir()
    Path("file").write_text("")
    monkeypatch.setattr(work, lambda *_, **__: pytest.fail("the work was done first"))
    assert main([{"RUN": run, "PATH": path}.get(word, word) for word in arguments]) == 2
    assert capsys.readouterr().err == (
        f"neuron-explorer: Cannot write {path}: {why}. Choose another file with {remedy}.\n"
    )


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:1", "127.0.0.1:1", "[::1]:1", "nobody.invalid"])
def test_a_scheduler_that_does_not_answer_is_one_line(address: str, tmp_path: Path) -> None:
    """In a process of its own: what a half-made client prints, it prints when the process ends."""
    pytest.importorskip("distributed")
    trace = Path(__file__).resolve().parents[2] / "sample_traces" / "synthetic" / "cuda.json"
    call = [sys.executable, "-m", "explorer.cli.main", "import", str(trace), "-o", str(tmp_path / "run")]
    done = subprocess.run(
        [*call, "--scheduler", address],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    said = f"No Dask scheduler answers at {address}. Start one: dask scheduler; then its workers."
    assert (done.returncode, done.stdout, done.stderr) == (3, "", f"neuron-explorer: {said}\n")
