"""Paths that cannot be opened, for reasons of the system and not of this program: one line each, and no report of a bug."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import fsspec
import pytest

from explorer.cli.main import main
from explorer.cli.run_name import name_of_source
from explorer.store.location import Location
from tests.cli.small_run import write_small_run
from tests.cli.test_empty_path import ARGUMENTS, VERBS_WITH_RUN


def outcome(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """Exit code and what was said, which must be one line on standard error."""
    code = main(arguments)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("neuron-explorer: ")
    assert captured.err.count("\n") == 1
    return code, captured.err.removeprefix("neuron-explorer: ").rstrip("\n")


@pytest.mark.parametrize("verb", VERBS_WITH_RUN)
def test_a_path_the_system_refuses(verb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    more = [str(loop)] if verb == "diff" else ARGUMENTS.get(verb, [])
    code, said = outcome([verb, str(loop), *more], capsys)
    assert code == 3
    assert (
        said
        == f"{loop} cannot be read: Too many levels of symbolic links. Check the path and its permissions."
    )


def test_a_name_that_is_too_long(capsys: pytest.CaptureFixture[str]) -> None:
    code, said = outcome(["summary", "/tmp/" + "x" * 300], capsys)
    assert code == 3
    assert said.endswith("cannot be read: File name too long. Check the path and its permissions.")


def test_a_folder_without_permission(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Refused by a stand-in for the system: tests may run as a user to whom nothing is refused."""
    folder = tmp_path / "locked"
    folder.mkdir()

    def refuse(path: Any) -> list[str]:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(os, "listdir", refuse)
    code, said = outcome(["lines", str(folder)], capsys)
    assert (code, said) == (
        3,
        f"{folder} cannot be read: Permission denied. Check the path and its permissions.",
    )


def test_a_folder_below_costs_itself_and_the_folder_named_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    traces = tmp_path / "traces"
    (traces / "locked").mkdir(parents=True)
    (traces / "a.json").write_text('[{"ph":"X","name":"a","ts":1,"dur":2,"pid":1,"tid":1}]')
    scan = os.scandir
    locked = str(traces / "locked")

    def refusing(path: Any) -> Any:
        if path == locked:
            raise PermissionError(13, "Permission denied", path)
        return scan(path)

    monkeypatch.setattr(os, "scandir", refusing)
    assert main(["import", str(traces), "-o", str(tmp_path / "run")]) == 4
    assert f"Not read: {locked} cannot be read: Permission denied." in capsys.readouterr().err
    code, said = outcome(["import", locked, "-o", str(tmp_path / "other")], capsys)
    assert (code, said) == (3, f"{locked} cannot be read: Permission denied. Check its permissions.")


class Broken(fsspec.AbstractFileSystem):  # type: ignore[misc]
    """A store whose every request fails in its own way."""

    protocol = "broken"

    def ls(self, path: str, detail: bool = True, **options: Any) -> Any:
        raise LookupError("no\ncredentials")

    info = exists = isfile = find = glob = ls


@pytest.mark.parametrize("arguments", [["summary"], ["import", "-o", "run"], ["import", "--cache-dir", "c"]])
@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("broken://x/y", "no credentials"),
        ("nowhere://x/y", "Protocol not known: nowhere"),
    ],
)
def test_a_store_that_does_not_answer(
    arguments: list[str],
    url: str,
    why: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    fsspec.register_implementation("broken", Broken, clobber=True)
    code, said = outcome([arguments[0], url, *arguments[1:]], capsys)
    assert code == 3
    assert why in said
    assert "Check the address" in said


def test_a_store_without_its_package(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "fsspec", None)
    code, said = outcome(["summary", "s3://bucket/run"], capsys)
    assert (code, said) == (
        2,
        "Opening s3://bucket/run needs the package fsspec, which is not installed. "
        'Install it with: pip install "neuron-explorer[cloud]"',
    )


NOT_UTF8 = os.fsdecode(b"r\xffn")


def test_no_run_lies_where_names_are_not_utf8(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / NOT_UTF8
    write_small_run(tmp_path / "run").rename(folder)
    said = f"The path {tmp_path}/r\\udcffn is not UTF-8, and no run can lie there. Rename the folder, or give another one."
    assert outcome(["lines", str(folder)], capsys) == (2, said)
    trace = tmp_path / "a.json"
    trace.write_text('[{"ph":"X","name":"a","ts":1,"dur":2,"pid":1,"tid":1}]')
    assert outcome(["import", str(trace), "-o", str(folder)], capsys) == (2, said)
    # Said before the program runs, not after hours of it.
    assert outcome(["record", "-o", str(folder), "--", "touch", str(tmp_path / "ran")], capsys) == (2, said)
    assert not (tmp_path / "ran").exists()


def test_traces_whose_names_are_not_utf8_are_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / NOT_UTF8
    folder.mkdir()
    trace = folder / f"{NOT_UTF8}.json"
    trace.write_text('[{"ph":"X","name":"a","ts":1,"dur":2,"pid":1,"tid":1}]')
    for source, run in ((trace, "runs/r_n"), (folder, "runs/r_n-2")):
        assert main(["import", str(source)]) == 0
        assert capsys.readouterr().err.endswith(f"run: {run}\n")
        assert main(["query", str(source), "SELECT name FROM events"]) == 0
        assert capsys.readouterr().out.split() == ["name", "a"]


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("traces/rank0.pt.trace.json.gz", "rank0"),
        ("prof.SQLITE", "prof"),
        ("runs/first/", "first"),
        ("traces/*.json", "import"),
        ("s3://bucket/run/", "run"),
        (f"{NOT_UTF8}.json", "r_n"),
        (".", os.path.basename(os.getcwd())),
    ],
)
def test_what_is_made_of_a_source_has_its_name(path: str, name: str) -> None:
    assert name_of_source(path, "import") == name


def test_a_report_of_a_trace_has_its_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "slow.json").write_text('[{"ph":"X","name":"a","ts":1,"dur":2,"pid":1,"tid":1}]')
    assert main(["report", "slow.json"]) == 0
    assert capsys.readouterr().err == "report: slow.html\n"
    assert (tmp_path / "slow.html").stat().st_size > 10_000


def test_a_run_is_no_trace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = write_small_run(tmp_path / "a run")
    code, said = outcome(["import", str(run), "-o", str(tmp_path / "other")], capsys)
    assert (code, said) == (3, f"{run} is a run already. Read it: neuron-explorer bottlenecks '{run}'")
    code, said = outcome(["import", ""], capsys)
    assert (code, said) == (2, "The path of the trace is empty. Give a trace file or a directory of them.")


def test_a_path_with_nul() -> None:
    with pytest.raises(Exception, match="holds a NUL character"):
        Location.of("a\0b")
