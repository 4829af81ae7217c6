"""The job's critical path and what-if against hand-computed truth."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

from explorer.analysis.ranks.job_path import job_path
from explorer.analysis.ranks.job_report import job_report
from explorer.analysis.ranks.job_what_if import predictions
from explorer.analysis.run import open_run
from tests.analysis.ranks.job import Job


def test_the_path_stays_on_the_straggler(tmp_path: Path) -> None:
    job = Job(extra={(2, step): 500_000 for step in range(30)}, offset_ns=(0, 10**7, -(10**6), 0))
    engine = open_run(job.write(tmp_path / "run")).engine
    pieces = job_path(engine)
    assert all(a.end_ns == b.start_ns for a, b in pairwise(pieces))
    whole = pieces[-1].end_ns - pieces[0].start_ns
    on_two = sum(piece.end_ns - piece.start_ns for piece in pieces if piece.rank == 2)
    assert on_two / whole > 0.85
    rows = engine.sql("SELECT sum(duration_ns)::BIGINT AS n FROM job_path").rows()
    assert rows == [{"n": whole}]


def test_gains_equal_the_truth(tmp_path: Path) -> None:
    job = Job(extra={(2, step): 500_000 for step in range(30)}, jitter_ns=0)
    found = {item.change: item for item in predictions(open_run(job.write(tmp_path / "run")).engine)}
    assert found["rank 2 as fast as the median"].before_ns == 1_700_000
    assert found["rank 2 as fast as the median"].after_ns == 1_200_000
    assert found["every rank as fast as the median"].saving_ns == 500_000
    assert found["communication 2 times as fast"].saving_ns == 100_000
    assert found["communication hidden altogether"].saving_ns == 200_000
    assert "rank 1 as fast as the median" not in found


def test_communication_that_no_compute_hides_by_group(tmp_path: Path) -> None:
    """Three of four ranks wait 300 us for the last one, and all exchange for 200 us."""
    job = Job(extra={(2, step): 300_000 for step in range(30)}, jitter_ns=0)
    (group,) = job_report(open_run(job.write(tmp_path / "run"))).groups
    assert (group["ranks"], group["calls"]) == ([0, 1, 2, 3], 120)
    assert group["exposed_ns"] == 200_000 + 300_000 * 3 // 4


def test_one_rank_has_no_job(tmp_path: Path) -> None:
    engine = open_run(Job(ranks=1).write(tmp_path / "run")).engine
    assert predictions(engine) == []
    assert [piece.rank for piece in job_path(engine)] == [0]
