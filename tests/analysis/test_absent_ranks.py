"""Ranks of the job that the run does not hold are said: in health, findings, the header's counts."""

from __future__ import annotations

from pathlib import Path

import pytest

from explorer.analysis.absent_ranks import absent_ranks, absent_text, ranks_text
from explorer.analysis.run import open_run
from explorer.analysis.run_facts import run_facts
from explorer.store.manifest import manifest_path
from explorer.store.reader import RunReader
from explorer.store.writer import RunWriter


def write(directory: Path, ranks: tuple[int, ...], job: int | None) -> Path:
    for rank in ranks:
        with RunWriter(directory, rank=rank) as writer:
            writer.manifest.world_size = job
            writer.write("tracks", [{"track_id": 1, "kind": "thread", "device_type": "cpu", "label": "main"}])
    return directory


@pytest.mark.parametrize(
    ("ranks", "job", "gaps"),
    [
        ((0, 1, 2, 3), 4, []),
        ((0, 2), 4, [(1, 1), (3, 3)]),
        ((5,), 8, [(0, 4), (6, 7)]),
        ((0, 1), None, []),
        ((0,), 1, []),
        ((0, 3), 2, []),
        ((0,), 2**40, []),
        ((0,), -5, []),
    ],
)
def test_the_gaps(
    ranks: tuple[int, ...], job: int | None, gaps: list[tuple[int, int]], tmp_path: Path
) -> None:
    reader = RunReader(write(tmp_path / "run", ranks, job))
    assert absent_ranks(reader) == gaps
    assert bool(absent_text(reader)) is bool(gaps)


def test_a_job_of_millions_of_ranks_costs_nothing(tmp_path: Path) -> None:
    assert absent_ranks(RunReader(write(tmp_path / "run", (7,), 2**31 - 1))) == [(0, 6), (8, 2**31 - 2)]


def test_ranks_that_were_not_asked_for_are_not_missing(tmp_path: Path) -> None:
    assert absent_ranks(RunReader(write(tmp_path / "run", (0, 1), 4), ranks=[0])) == []


def test_a_rank_with_a_broken_manifest_is_no_absent_one(tmp_path: Path) -> None:
    run = write(tmp_path / "run", (0, 1, 2), 4)
    (run / manifest_path(1)).write_text("{")
    assert absent_ranks(RunReader(run)) == [(3, 3)]


def test_the_words() -> None:
    assert ranks_text([(3, 3)]) == "3"
    assert ranks_text([(1, 1), (4, 7)]) == "1 and 4 to 7"
    assert ranks_text([(2 * n, 2 * n) for n in range(9)]) == "0, 2, 4, 6, 8, 10, 12, 14 and others"


@pytest.mark.parametrize(("ranks", "severity"), [((0, 2), "warning"), ((2,), "info")])
def test_health_and_findings_say_it(ranks: tuple[int, ...], severity: str, tmp_path: Path) -> None:
    with open_run(write(tmp_path / "run", ranks, 4)) as run:
        whole = run.health().rows()
        (row,) = [row for row in whole if row["kind"] == "missing_ranks"]
        assert (row["severity"], row["count"]) == (severity, 4 - len(ranks))
        assert row["message"].startswith("The job had 4 ranks; ")
        order = ["error", "warning", "info"]
        assert [order.index(one["severity"]) for one in whole] == sorted(
            order.index(one["severity"]) for one in whole
        )
        assert "missing_ranks" in {one["kind"] for one in run.bottlenecks().health}
        assert run_facts(run).warnings == (severity == "warning")
