"""The job's critical path and what-if against hand-computed truth."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from explorer.analysis.ranks.job_path import job_path
from explorer.analysis.ranks.job_what_if import _replayed, _Step, meetings, predictions
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


@st.composite
def recorded_steps(draw: st.DrawFn) -> _Step:
    """A step of up to four ranks as it would be recorded: work, then a call that all or some of them join."""
    ranks = list(range(draw(st.integers(2, 4))))
    starts = {rank: draw(st.integers(0, 1000)) for rank in ranks}
    clock = dict(starts)
    calls = []
    for number in range(draw(st.integers(1, 5))):
        members = draw(st.lists(st.sampled_from(ranks), min_size=2, unique=True))
        arrival = {rank: clock[rank] + draw(st.integers(0, 5000)) for rank in members}
        last = max(arrival.values())
        rows = []
        for rank in members:
            clock[rank] = last + draw(st.integers(0, 500))
            rows.append(
                {
                    "match_id": number,
                    "rank": rank,
                    "arrival_ns": arrival[rank],
                    "end_ns": clock[rank],
                    "last_arrival_ns": last,
                }
            )
        calls.append(rows)
    return _Step(starts, {rank: clock[rank] + draw(st.integers(0, 900)) for rank in ranks}, calls)


@given(recorded_steps())
def test_nothing_changed_gives_the_recorded_step(step: _Step) -> None:
    recorded = max(step.ends.values()) - min(step.starts.values())
    assert _replayed(step, lambda rank, number, ns: ns, 1.0) == recorded


@given(recorded_steps(), st.floats(0, 1), st.floats(0, 1))
def test_faster_work_and_transfer_never_take_longer(step: _Step, work: float, transfer: float) -> None:
    recorded = max(step.ends.values()) - min(step.starts.values())
    assert _replayed(step, lambda rank, number, ns: work * ns, transfer) <= recorded + 1e-6


def test_calls_that_overlap_on_a_rank_are_one_meeting() -> None:
    """Two buckets of one backward pass, rank 1 late for both; then a call of rank 0 and 2 alone."""

    def row(match: int, rank: int, arrival: int, end: int) -> dict[str, int]:
        return {"match_id": match, "rank": rank, "arrival_ns": arrival, "end_ns": end}

    rows = [
        row(1, 0, 0, 50),
        row(2, 0, 1, 52),
        row(1, 1, 40, 50),
        row(2, 1, 42, 52),
        row(3, 0, 60, 70),
        row(3, 2, 65, 70),
    ]
    assert meetings(rows) == [
        [
            {"rank": 0, "arrival_ns": 1, "end_ns": 52, "last_arrival_ns": 42},
            {"rank": 1, "arrival_ns": 42, "end_ns": 52, "last_arrival_ns": 42},
        ],
        [
            {"rank": 0, "arrival_ns": 60, "end_ns": 70, "last_arrival_ns": 65},
            {"rank": 2, "arrival_ns": 65, "end_ns": 70, "last_arrival_ns": 65},
        ],
    ]


def test_one_rank_has_no_job(tmp_path: Path) -> None:
    engine = open_run(Job(ranks=1).write(tmp_path / "run")).engine
    assert predictions(engine) == []
    assert [piece.rank for piece in job_path(engine)] == [0]
