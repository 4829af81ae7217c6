"""Every reading verb on a run whose numbers are known: the table, the document, the filters, the errors."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from explorer.analysis.rule import NEEDS
from explorer.analysis.run import open_run
from explorer.cli import main as cli
from explorer.cli.reading import named
from explorer.model.finding import Findings, NotChecked, Saving
from tests.analysis.hand_built import event, make_run
from tests.cli.small_run import MS, write_small_run

READING = [
    name
    for name, verb in cli.VERBS.items()
    if verb.group == "Read" and name not in ("open", "query", "source", "what-if")
]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(write_small_run(tmp_path_factory.mktemp("small") / "run"))


@pytest.fixture(scope="module")
def two_ranks(tmp_path_factory: pytest.TempPathFactory) -> str:
    directory = tmp_path_factory.mktemp("two") / "run"
    write_small_run(directory, rank=0)
    return str(write_small_run(directory, rank=3, steps=3))


def printed(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    assert cli.main(arguments) == code
    return capsys.readouterr().out


def document(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(printed(capsys, *arguments, "--json"))
    assert next(iter(found)) == "schema"
    assert found["schema"].startswith("neuron-explorer/")
    return found


@pytest.mark.parametrize("verb", READING)
def test_tables_fit_eighty_columns_and_have_no_colour(
    verb: str, run: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    out = printed(capsys, verb, run)
    assert out.strip()
    assert "\x1b" not in out
    assert max(len(line) for line in out.splitlines() if run not in line) <= 80


@pytest.mark.parametrize("verb", READING)
def test_json_is_one_document_that_names_the_run(
    verb: str, run: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert document(capsys, verb, run)["run"] == run


def test_lines(run: str, capsys: pytest.CaptureFixture[str]) -> None:
    rows = document(capsys, "lines", run)["rows"]
    assert [(r["file"], r["line"], r["device_ns"], r["host_ns"], r["python_ns"]) for r in rows] == [
        ("train.py", 5, 6 * MS, 8 * MS, 0),
        ("train.py", 6, 2 * MS, 4 * MS, 0),
        ("train.py", 7, 0, 8 * MS, 8 * MS),
    ]
    out = printed(capsys, "lines", run)
    assert out.splitlines()[0].split() == [
        "Device", "%", "Device", "Host", "%", "Host", "Own", "Python", "Charged", "Ops", "Visits", "Line", "Code",
    ]  # fmt: skip
    assert out.splitlines()[3].split() == [
        "0.0", "%", "0", "40.0", "%", "8.00", "ms", "8.00", "ms", "8.00", "ms", "0", "0", "2", "train.py:7", "slow(loss)",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("function", "shown"),
    [
        ("main", "main()"),
        ("<module>", "<module>"),
        ("f.<locals>.<lambda>", "f.<locals>.<lambda>"),
        ("", ""),
        (None, ""),
    ],
)
def test_a_function_stands_for_missing_code(function: str | None, shown: str) -> None:
    assert named(function) == shown


def test_limit_is_said(run: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = document(capsys, "ops", run, "--limit", "1")
    assert [row["name"] for row in found["rows"]] == ["aten::linear"]
    assert (found["total_rows"], found["truncated"]) == (2, True)
    assert cli.main(["ops", run, "-n", "1"]) == 0
    captured = capsys.readouterr()
    assert "aten::item" not in captured.out
    assert captured.err == "1 of 2 rows; --limit 0 shows all.\n"
    assert document(capsys, "ops", run, "--limit", "0")["truncated"] is False


def test_rank(two_ranks: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert [row["rank"] for row in document(capsys, "steps", two_ranks)["rows"]] == [0, 0, 3, 3, 3]
    (kernel, _) = document(capsys, "kernels", two_ranks, "--rank", "3")["rows"]
    assert (kernel["name"], kernel["calls"], kernel["total_ns"]) == ("sgemm_128x64", 3, 9 * MS)
    assert cli.main(["kernels", two_ranks, "--rank", "1"]) == 2
    assert "has no rank 1; it holds ranks 0 to 3." in capsys.readouterr().err


def test_step(run: str, capsys: pytest.CaptureFixture[str]) -> None:
    (row,) = document(capsys, "breakdown", run, "--step", "1")["rows"]
    parts = ("compute_ns", "exposed_communication_ns", "exposed_copy_ns", "idle_ns")
    assert [row[part] for part in parts] == [3 * MS, 0, 1 * MS, 6 * MS]
    assert row["wall_ns"] == 10 * MS


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("steps", "--step", "999"), "The run has no step 999. It has steps 0 to 1."),
        (("gaps", "--step", "2"), "The run has no step 2."),
        (("critical-path", "--pieces", "--step", "7"), "The run has no step 7."),
        (("critical-path", "--step", "1"), "--step is for --pieces"),
        (("gaps", "--mode", "hta", "--step", "1"), "--step does not go with --mode hta"),
        (("launches", "--queue", "--step", "1"), "--step does not go with --queue"),
    ],
)
def test_a_step_that_cannot_be_shown_is_said(
    run: str, arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    verb, *rest = arguments
    assert cli.main([verb, run, *rest]) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.out == ""


def test_a_folder_of_runs_is_named_as_such(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_small_run(tmp_path / "first")
    write_small_run(tmp_path / "second")
    assert cli.main(["lines", str(tmp_path)]) == 3
    assert (
        f"is a folder of runs and no run itself. Name one of them: {tmp_path}/first, {tmp_path}/second"
        in (capsys.readouterr().err)
    )


def test_roofline_says_why_there_is_no_efficiency(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    op = event(1, "op", "aten::mm", 0, 4_000, shapes="[[10,10],[10,10]]", dtypes='["float","float"]')
    cpu = {"device": "cpu", "name": "No such CPU", "unit_count": 2}
    run = make_run(tmp_path, [op], devices=[cpu])
    out = printed(capsys, "roofline", run.directory)
    # 2,000 operations in 4 µs.
    assert out.splitlines()[0].split() == ["Time", "Op", "Shapes", "Type", "Calls", "Computes", "Moves", "Efficiency", "Above", "least"]  # fmt: skip
    assert "500 MFLOP/s" in out.splitlines()[1]
    assert out.splitlines()[1].endswith(" MB/s")
    assert "No efficiency: the peaks of no device of the run are known." in out


def test_gaps_come_longest_first(run: str, capsys: pytest.CaptureFixture[str]) -> None:
    gaps = document(capsys, "gaps", run)["rows"]
    assert [row["duration_ns"] for row in gaps] == sorted((row["duration_ns"] for row in gaps), reverse=True)
    assert (gaps[0]["duration_ns"], gaps[0]["cause"], gaps[0]["file"], gaps[0]["line"]) == (
        5 * MS,
        "python",
        "train.py",
        7,
    )


def test_bottlenecks(run: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = document(capsys, "bottlenecks", run)
    assert list(found)[:5] == ["schema", "run", "step_ns", "steps", "ranks"]
    assert found["steps"] == 2
    worst = found["findings"][0]
    out = printed(capsys, "bottlenecks", run)
    assert worst["title"] in out.splitlines()[2]
    assert f"{worst['lines'][0]['file']}:{worst['lines'][0]['line']}  {worst['lines'][0]['code']}" in out
    assert " ".join(worst["advice"].split()[:4]) in " ".join(out.split())
    assert "Not checked" in out
    assert worst["evidence"][0]["sql"].split()[0] not in out
    assert "sql " in printed(capsys, "bottlenecks", run, "--evidence")
    assert len(document(capsys, "bottlenecks", run, "--limit", "1")["findings"]) == 1


def test_a_bound_and_a_doubt_of_the_run(run: str, capsys: pytest.CaptureFixture[str]) -> None:
    from explorer.cli.bottlenecks import print_findings

    with open_run(run) as opened:
        first = opened.bottlenecks()[0]
    saving = Saving(1 * MS, 2 * MS, 3 * MS, "bound")
    found = replace(first, saving=saving, saving_share=0.2, caveats=("Own.", "Of the run."))
    missing = tuple(NotChecked(f"rule_{n}", NEEDS["kernels" if n else "device"]) for n in range(5))
    print_findings(Findings(run, 10 * MS, 2, 1, (found, found), missing, doubts=("Of the run.",)))
    out = capsys.readouterr().out
    assert out.count("saves  at most 3.00 ms of each step (expected 2.00 ms, 20.0 %)  bound; confidence") == 2
    assert out.splitlines()[1] == "but  Of the run."
    assert out.count("Of the run.") == 1
    assert out.count("but    Own.\n") == 2
    assert "  - 5 rules need a device: none in this run\n" in out


def test_source_file(run: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = document(capsys, "source", run, "./train.py")
    assert found["complete"] is True
    by_line = {line["line"]: line for line in found["lines"]}
    assert by_line[5]["code"] == "    y = model(x)"
    assert by_line[5]["costs"]["device_ns"] == 6 * MS
    assert by_line[1]["costs"] is None
    out = printed(capsys, "source", run, "train.py")
    assert "75.0 %   6.00 ms" in out
    assert "import torch" not in out
    assert "import torch" in printed(capsys, "source", run, "train.py", "--whole")


def test_source_without_text_shows_the_known_lines(run: str, capsys: pytest.CaptureFixture[str]) -> None:
    rows = document(capsys, "source", run)["rows"]
    assert rows[0]["file"] == "train.py"
    assert cli.main(["source", run, "other.py"]) == 2
    assert "The run has no lines of a file other.py. It has: train.py" in capsys.readouterr().err


def test_query_forms(run: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    sql = "SELECT name, calls FROM ops ORDER BY name"
    assert printed(capsys, "query", run, sql).splitlines() == [
        "name          calls",
        "aten::item        2",
        "aten::linear      2",
    ]
    rows = list(csv.reader(io.StringIO(printed(capsys, "query", run, sql, "--format", "csv"))))
    assert rows == [["name", "calls"], ["aten::item", "2"], ["aten::linear", "2"]]
    monkeypatch.setattr("sys.stdin", io.StringIO("SELECT 1 AS one, 2 AS one"))
    assert printed(capsys, "query", run, "-").split() == ["one", "one_1", "1", "2"]
    found = document(capsys, "query", run, sql)
    assert found["rows"][0] == {"name": "aten::item", "calls": 2}


def test_query_cut_is_said(run: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["query", run, "SELECT * FROM events", "--limit", "3"]) == 0
    captured = capsys.readouterr()
    assert len(captured.out.splitlines()) == 4
    assert captured.err == "Cut at 3 rows; --limit gives more.\n"


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM events",
        "COPY events TO '/tmp/x.csv'",
        "SELEC 1",
        "SELECT * FROM read_csv('/etc/passwd')",
        " ",
    ],
)
def test_query_refuses_what_is_not_one_select(sql: str, run: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["query", run, sql]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1


def test_summary(run: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = document(capsys, "summary", run)
    assert {part["key"]: part["duration_ns"] for part in found["parts"]} == {
        "compute": 3 * MS,
        "copy": 1 * MS,
        "idle": 6 * MS,
    }
    assert found["ranks"][0]["complete_steps"] == 2
    out = printed(capsys, "summary", run)
    assert "1 kernel has no launch." in out
    assert f"neuron-explorer bottlenecks {run}" in out


def test_health(run: str, capsys: pytest.CaptureFixture[str]) -> None:
    rows = document(capsys, "health", run)["rows"]
    assert [row["kind"] for row in rows[:1]] == ["unlinked_kernels"]
    assert "Record with record_shapes=True." in printed(capsys, "health", run)


@pytest.mark.parametrize("verb", [*READING, "source"])
def test_bad_input_is_one_line_and_three(
    verb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    for path in (tmp_path / "missing", empty):
        assert cli.main([verb, str(path)]) == 3
        captured = capsys.readouterr()
        assert captured.out == ""
        assert captured.err.count("\n") == 1
        assert str(path) in captured.err


def test_a_newer_run_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory = write_small_run(tmp_path / "run")
    path = directory / "manifests" / "rank-0.json"
    manifest = json.loads(path.read_text())
    path.write_text(json.dumps({**manifest, "schema_version": 99}))
    assert cli.main(["ops", str(directory)]) == 3
    assert "schema version 99" in capsys.readouterr().err


def test_thresholds_can_be_changed(run: str, capsys: pytest.CaptureFixture[str]) -> None:
    def rules(*arguments: str) -> set[str]:
        return {finding["rule"] for finding in document(capsys, "bottlenecks", run, *arguments)["findings"]}

    assert "exposed_copies" in rules()
    assert "exposed_copies" not in rules("--set", "exposed_copies.exposed_share=0.99")
    for wrong, said in (
        ("exposed_copys.exposed_share=1", "Did you mean exposed_copies.exposed_share?"),
        ("exposed_copies.exposed_share=much", "is not RULE.SETTING=NUMBER."),
    ):
        assert cli.main(["bottlenecks", run, "--set", wrong]) == 2
        assert said in capsys.readouterr().err


def test_slack(run: str, capsys: pytest.CaptureFixture[str]) -> None:
    rows = document(capsys, "critical-path", "--slack", run)["slack"]
    # The matrix product could end 1 ms later: the copy behind it waits for its launch.
    assert {row["name"]: (row["critical_calls"], row["least_slack_ns"]) for row in rows} == {
        "aten::linear": (2, 0),
        "sgemm_128x64": (0, MS),
        "cudaMemcpyAsync": (2, 0),
        "Memcpy DtoH": (2, 0),
        "cudaLaunchKernel": (2, 0),
    }
    assert "least slack" in printed(capsys, "critical-path", "--slack", run)
