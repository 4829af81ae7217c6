"""Jobs of two and four gloo processes, captured here: every call is matched, the slowed rank and its line are named."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from explorer.analysis.ranks.pipeline_schedule import Pipeline, pipelines
from explorer.analysis.ranks.stragglers import stragglers
from explorer.analysis.rules import straggler as straggler_rule
from explorer.analysis.run import Run, open_run
from explorer.cli.main import main

torch = pytest.importorskip("torch")
pytestmark = [
    pytest.mark.capture,
    pytest.mark.slow,
    pytest.mark.skipif(not torch.distributed.is_gloo_available(), reason="this torch has no gloo"),
]

PROGRAM = Path(__file__).with_name("gloo_jobs.py")
SLOW = 1
STEPS = 10
MICROBATCHES = 4


def recorded(folder: Path, ranks: int, *jobs: str) -> Path:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(PROGRAM), str(folder), str(ranks), *jobs],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(PROGRAM.parents[2])},
    )
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def four(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return recorded(
        tmp_path_factory.mktemp("four"), 4, "data", "line", "backward", "mesh", "1f1b", "interleaved"
    )


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return recorded(tmp_path_factory.mktemp("two"), 2, "fsdp", "tensor", "gpipe", "lengths", "experts")


def marked(job: str) -> int:
    """The line of the program that its job slows down."""
    lines = PROGRAM.read_text().splitlines()
    return next(number for number, text in enumerate(lines, 1) if text.endswith(f"  # {job}"))


def calls(run: Run) -> dict[tuple[str, int], tuple[int, int]]:
    """(operation, ranks of the group) -> (matched calls, those that all ranks of the group recorded with a line)."""
    rows = run.engine.sql(
        """SELECT operation, group_size, count(*) AS n, count(*) FILTER (whole) AS whole FROM (
             SELECT match_id, any_value(operation) AS operation, max(group_size) AS group_size,
                    count(*) = max(group_size) AND count(site_id) = count(*) AS whole
             FROM collectives_matched GROUP BY match_id) GROUP BY operation, group_size"""
    ).rows()
    return {(row["operation"], row["group_size"]): (row["n"], row["whole"]) for row in rows}


@pytest.mark.parametrize(("job", "kind"), [("data", "data"), ("line", "python"), ("backward", "python")])
def test_the_slowed_rank_and_its_line_are_named(four: Path, job: str, kind: str) -> None:
    found = stragglers(open_run(str(four / job)).engine)
    assert found[0].rank == SLOW
    assert found[0].pattern == "persistent"
    cause = found[0].causes[0]
    assert (cause.kind, os.path.basename(cause.file or ""), cause.line) == (kind, PROGRAM.name, marked(job))
    # It sleeps 30 ms (or sorts as long as it takes), and others wait for most of that; a busy machine adds to it.
    assert cause.more_ns > 20_000_000
    assert 0.3 < found[0].share <= 1.2


def test_the_verb_and_the_finding_name_it_too(four: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ranks", str(four / "data"), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["stragglers"][0]["causes"][0]["line"] == marked("data")
    gain = next(one for one in report["gains"] if one["change"] == f"rank {SLOW} as fast as the median")
    # How much of the 30 ms is hidden behind other ranks' delays depends on what else the machine does.
    assert gain["saving_ns"] > 1_000_000
    findings = open_run(str(four / "data")).bottlenecks()
    found = next(one for one in findings if one.rule == straggler_rule.RULE.name)
    assert found.lines[0].line == marked("data")


def test_steps_in_which_a_capture_began_are_left_out(four: Path) -> None:
    rows = open_run(str(four / "data")).engine.sql("SELECT DISTINCT step, disturbed FROM rank_waits").rows()
    disturbed = {row["step"] for row in rows if row["disturbed"]}
    assert 0 in disturbed
    assert len(disturbed) < STEPS / 2


def test_buckets_that_overlap_are_waited_for_once(four: Path) -> None:
    rows = open_run(str(four / "backward")).engine.sql(
        "SELECT * FROM rank_waits WHERE NOT disturbed AND rank <> 1"
    )
    assert rows.rows()
    assert all(row["wait_ns"] <= row["wall_ns"] for row in rows.rows())


@pytest.mark.parametrize(
    ("job", "wanted"),
    [
        ("fsdp", {("all_gather", 2): 4, ("reduce_scatter", 2): 4}),
        ("tensor", {("all_reduce", 2): 4}),
        ("gpipe", {("send_recv", 2): 4 * 2 * MICROBATCHES}),
    ],
)
def test_every_call_of_two_ranks_is_matched_and_has_a_line(
    two: Path, job: str, wanted: dict[tuple[str, int], int]
) -> None:
    assert calls(open_run(str(two / job))) == {key: (count, count) for key, count in wanted.items()}


@pytest.mark.parametrize(
    ("job", "wanted"),
    [
        ("data", {("all_reduce", 4): STEPS, ("broadcast", 4): 2}),
        ("mesh", {("all_reduce", 2): 3 * 4}),
        ("1f1b", {("send_recv", 2): 4 * 2 * 3 * MICROBATCHES}),
        ("interleaved", {("send_recv", 2): 4 * 2 * 7 * MICROBATCHES}),
    ],
)
def test_every_call_of_four_ranks_is_matched_and_has_a_line(
    four: Path, job: str, wanted: dict[tuple[str, int], int]
) -> None:
    assert calls(open_run(str(four / job))) == {key: (count, count) for key, count in wanted.items()}


@pytest.mark.parametrize(
    ("job", "ranks", "schedule", "chunks", "bubble"),
    [
        ("1f1b", 4, "1F1B", 1, 3 / 7),
        ("interleaved", 4, "interleaved 1F1B", 2, 3 / 11),
        ("gpipe", 2, "GPipe", 1, 1 / 5),
    ],
)
def test_the_pipeline_schedule_is_recognised(
    request: pytest.FixtureRequest, job: str, ranks: int, schedule: str, chunks: int, bubble: float
) -> None:
    folder: Path = request.getfixturevalue("four" if ranks == 4 else "two")
    found = pipelines(open_run(str(folder / job)).engine)
    assert found == [Pipeline(tuple(range(ranks)), schedule, MICROBATCHES, chunks, pytest.approx(bubble), 4)]


def test_the_mesh_is_shown(four: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ranks", str(four / "mesh")]) == 0
    assert "Mesh: dp 2 x tp 2." in capsys.readouterr().out


@pytest.mark.parametrize(
    ("job", "title", "line"),
    [
        ("lengths", "Uneven numbers of tokens or samples across ranks", "wrapped(tokens)"),
        ("experts", "Uneven load of experts across ranks", "expert(mine)"),
    ],
)
def test_uneven_work_is_explained_by_what_ranks_are_given(two: Path, job: str, title: str, line: str) -> None:
    findings = open_run(str(two / job)).bottlenecks()
    between = [one for one in findings if one.rule in ("straggler", "load_imbalance")]
    assert [one.title for one in between] == [title]
    assert "compute time goes with it (correlation" in between[0].evidence[1].statement
    assert line in between[0].lines[0].code


def test_stages_that_wait_are_a_bubble_not_uneven_work(four: Path) -> None:
    findings = open_run(str(four / "1f1b")).bottlenecks()
    rules = [one.rule for one in findings]
    assert "pipeline_bubble" in rules
    assert not {"straggler", "load_imbalance"} & set(rules)
    found = findings[rules.index("pipeline_bubble")]
    assert "Ranks 0, 1, 2, 3 run 1F1B with 4 microbatches, whose bubble is at least 43%." in found.advice
    assert len(found.ranks) > 1
