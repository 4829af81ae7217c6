"""The replay of a job against one written out call by call, on steps drawn at random."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from explorer.analysis.ranks.job_replay import JobReplay
from explorer.analysis.ranks.job_what_if import _at_median_speed
from explorer.analysis.ranks.meetings import JobSteps, job_steps
from tests.analysis.ranks import slow_replay

Recorded = tuple[list[dict[str, int]], list[dict[str, int]]]
"""Rows of slots and of calls."""


@st.composite
def recorded(draw: st.DrawFn) -> Recorded:
    """Steps of up to four ranks as they would be recorded: work, then a call that all or some of them join; some calls begin
    while the rank is still in the one before, and some ranks leave before the last has come."""
    slots, calls = [], []
    for step in range(draw(st.integers(1, 3))):
        ranks = list(range(draw(st.integers(2, 4))))
        starts = {rank: draw(st.integers(0, 1000)) for rank in ranks}
        clock, before = dict(starts), dict(starts)
        for number in range(draw(st.integers(1, 5))):
            members = sorted(draw(st.lists(st.sampled_from(ranks), min_size=2, unique=True)))
            overlaps = draw(st.booleans())
            arrival = {
                rank: (before if overlaps else clock)[rank] + draw(st.integers(0, 5000)) for rank in members
            }
            last = max(arrival.values())
            for rank in members:
                early = draw(st.integers(0, 9)) == 0
                left = (arrival[rank] if early else last) + draw(st.integers(0, 500))
                before[rank], clock[rank] = arrival[rank], max(clock[rank], left)
                calls.append(
                    {
                        "step": step,
                        "match_id": 10 * step + number,
                        "rank": rank,
                        "arrival_ns": arrival[rank],
                        "end_ns": left,
                    }
                )
        slots += [
            {
                "step": step,
                "rank": rank,
                "start_ns": starts[rank],
                "end_ns": clock[rank] + draw(st.integers(0, 900)),
            }
            for rank in ranks
        ]
    calls.sort(key=lambda row: (row["step"], row["arrival_ns"], row["match_id"], row["rank"]))
    return slots, calls


def columns(rows: list[dict[str, int]]) -> dict[str, Any]:
    return {name: np.array([row[name] for row in rows], np.int64) for name in rows[0]}


def fast(job: Recorded) -> JobSteps:
    return job_steps(*(columns(rows) for rows in job))


def slow(job: Recorded) -> list[slow_replay.Step]:
    slots, calls = job
    return [
        slow_replay.Step(
            {row["rank"]: row["start_ns"] for row in slots if row["step"] == step},
            {row["rank"]: row["end_ns"] for row in slots if row["step"] == step},
            slow_replay.meetings([row for row in calls if row["step"] == step]),
        )
        for step in sorted({row["step"] for row in slots})
    ]


@given(recorded())
def test_nothing_changed_gives_the_recorded_steps(job: Recorded) -> None:
    steps = fast(job)
    replay = JobReplay(steps)
    wanted = [max(step.ends.values()) - min(step.starts.values()) for step in slow(job)]
    assert replay.recorded_ns.tolist() == wanted
    assert replay.run(steps.work_ns, steps.tail_ns).tolist() == wanted


@given(recorded(), st.sampled_from([0.0, 0.25, 0.5, 1.0]))
def test_it_equals_the_replay_written_out(job: Recorded, transfer: float) -> None:
    steps, written_out = fast(job), slow(job)
    usual = slow_replay.usual(written_out)
    work, tail = _at_median_speed(steps)
    found = JobReplay(steps).run(work, tail, transfer).tolist()
    assert found == [
        slow_replay.replayed(step, lambda r, n, ns: min(ns, usual.get((r, n), ns)), transfer)
        for step in written_out
    ]


@given(recorded(), st.floats(0, 1), st.floats(0, 1))
def test_faster_work_and_transfer_never_take_longer(job: Recorded, work: float, transfer: float) -> None:
    steps = fast(job)
    replay = JobReplay(steps)
    found = replay.run(
        np.maximum(steps.work_ns, 0) * work + np.minimum(steps.work_ns, 0), steps.tail_ns * work, transfer
    )
    assert (found <= replay.recorded_ns + 1e-6).all()


@given(recorded(), st.floats(0, 1))
def test_no_rank_alone_saves_more_than_its_bound(job: Recorded, factor: float) -> None:
    steps = fast(job)
    replay = JobReplay(steps)
    for rank, most in replay.most_saved_alone_ns().items():
        work = np.where(steps.rank == rank, np.minimum(steps.work_ns, steps.work_ns * factor), steps.work_ns)
        tail = np.where(steps.rank_of_slot == rank, steps.tail_ns * factor, steps.tail_ns)
        saved = replay.recorded_ns - replay.run(work, tail)
        assert (saved <= most + 1e-6).all()


def test_calls_that_overlap_on_a_rank_are_one_meeting() -> None:
    """Two buckets of one backward pass, rank 1 late for both; then a call of rank 0 and 2 alone."""
    slots = [{"step": 0, "rank": rank, "start_ns": 0, "end_ns": 80} for rank in range(3)]
    rows = [
        (1, 0, 0, 50),
        (2, 0, 1, 52),
        (1, 1, 40, 50),
        (2, 1, 42, 52),
        (3, 0, 60, 70),
        (3, 2, 65, 70),
    ]
    names = ("match_id", "rank", "arrival_ns", "end_ns")
    calls = [{"step": 0, **dict(zip(names, row))} for row in rows]
    steps = fast((slots, calls))
    visits = [
        (int(rank), int(arrival), int(left), int(last))
        for rank, arrival, left, last in zip(
            steps.rank, steps.arrival_ns, steps.left_ns, steps.last_arrival_ns
        )
    ]
    assert visits == [(0, 1, 52, 42), (1, 42, 52, 42), (0, 60, 70, 65), (2, 65, 70, 65)]
    assert steps.round.tolist() == [0, 0, 1, 1]
    assert (steps.work_ns.tolist(), steps.tail_ns.tolist()) == ([1, 42, 8, 65], [10, 28, 10])


def test_a_rank_that_takes_part_alone_is_no_job() -> None:
    slots = [{"step": 0, "rank": 0, "start_ns": 0, "end_ns": 9}]
    calls = [{"step": 0, "match_id": 1, "rank": 0, "arrival_ns": 1, "end_ns": 2}]
    assert not len(fast((slots, calls)).slot)


@pytest.mark.parametrize("count", [1, 2, 500])
def test_chains_of_overlaps_become_one_meeting(count: int) -> None:
    """Call n overlaps call n+1 on one rank only, the ranks in turn."""
    slots = [{"step": 0, "rank": rank, "start_ns": 0, "end_ns": 10**6} for rank in range(2)]
    calls = []
    for n in range(count):
        for rank in range(2):
            begin = 100 * n + (60 if n % 2 == rank else 0)
            calls.append(
                {
                    "step": 0,
                    "match_id": n,
                    "rank": rank,
                    "arrival_ns": begin,
                    "end_ns": 100 * n + 120 - 50 * (n % 2 != rank),
                }
            )
    calls.sort(key=lambda row: (row["arrival_ns"], row["match_id"], row["rank"]))
    wanted = slow((slots, calls))[0].meetings
    steps = fast((slots, calls))
    assert len(set(zip(steps.meeting.tolist(), steps.round.tolist()))) == len(wanted)
