"""What the whole job would gain: stragglers at the median's speed, faster communication, perfect overlap."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from explorer.analysis.ranks.job_replay import Floats, JobReplay
from explorer.analysis.ranks.meetings import Ints, JobSteps, job_steps
from explorer.analysis.ranks.query import query

if TYPE_CHECKING:
    from explorer.analysis.engine import Engine

SMALLEST_SHARE = 0.01
"""A rank whose speed would change the step by less is not named."""


@dataclass(frozen=True, slots=True)
class JobPrediction:
    """Median over the complete steps of the time from the first rank's start to the last rank's end, in ns."""

    change: str
    before_ns: int
    after_ns: int

    @property
    def saving_ns(self) -> int:
        return self.before_ns - self.after_ns


def predictions(engine: Engine, factor: float = 2.0) -> list[JobPrediction]:
    """The usual questions, largest saving first: every rank at the median's speed, each straggler alone, communication
    `factor` times as fast, communication free (the bound of perfect overlap)."""
    steps = _load(engine)
    if not len(steps.slot):
        return []
    replay = JobReplay(steps)
    recorded = replay.recorded_ns
    before = round(float(np.median(recorded)))
    work, tail = _at_median_speed(steps)

    def predicted(
        change: str, work: Floats | Ints, tail: Floats | Ints, transfer: float = 1.0
    ) -> JobPrediction:
        return JobPrediction(change, before, round(float(np.median(replay.run(work, tail, transfer)))))

    found = [
        predicted("every rank as fast as the median", work, tail),
        predicted(f"communication {factor:g} times as fast", steps.work_ns, steps.tail_ns, 1 / factor),
        predicted("communication hidden altogether", steps.work_ns, steps.tail_ns, 0.0),
    ]
    for rank, most in sorted(replay.most_saved_alone_ns().items()):
        if before - float(np.median(recorded - most)) <= SMALLEST_SHARE * before:
            continue
        one = predicted(
            f"rank {rank} as fast as the median",
            np.where(steps.rank == rank, work, steps.work_ns),
            np.where(steps.rank_of_slot == rank, tail, steps.tail_ns),
        )
        if one.saving_ns > SMALLEST_SHARE * before:
            found.append(one)
    return sorted(found, key=lambda item: (-item.saving_ns, item.change))


def _load(engine: Engine) -> JobSteps:
    spans = engine.sql(query("usable_spans")).arrow()
    calls = engine.sql(query("step_calls")).arrow()
    return job_steps(
        {name: spans.column(name).to_numpy().astype(np.int64) for name in spans.column_names},
        {name: calls.column(name).to_numpy().astype(np.int64) for name in calls.column_names},
    )


def _at_median_speed(steps: JobSteps) -> tuple[Floats, Floats]:
    """Work before visits and after the last one, no longer than the median of the other ranks, each at its own median over
    steps."""
    rank = np.concatenate([steps.rank, steps.rank_of_slot])
    stretch = np.concatenate([steps.stretch, steps.tail_stretch])
    length = np.concatenate([steps.work_ns, steps.tail_ns])
    order = np.lexsort((length, rank, stretch))
    pairs = np.stack([stretch[order], rank[order]], axis=1)
    begins = np.flatnonzero(np.append(True, (pairs[1:] != pairs[:-1]).any(axis=1)))
    own = _middle(length[order], begins, np.append(begins[1:], len(order)))
    usual = _middle_of_others(own, pairs[begins, 0])
    # A stretch that no other rank has stays as it is.
    limit = np.empty(len(order))
    limit[order] = np.repeat(usual, np.diff(np.append(begins, len(order))))
    shorter = np.where(np.isnan(limit), length, np.minimum(length, limit))
    return shorter[: len(steps.slot)], shorter[len(steps.slot) :]


def _middle(values: Ints, begin: Ints, beyond: Ints) -> Floats:
    """The median of each range of values, which are sorted within it."""
    return np.asarray((values[(begin + beyond - 1) // 2] + values[(begin + beyond) // 2]) / 2)


def _middle_of_others(values: Floats, group: Ints) -> Floats:
    """For each value the median of the other values of its group (groups are together); NaN where there is none."""
    order = np.lexsort((values, group))
    ordered = values[order]
    begins = np.flatnonzero(np.append(True, group[1:] != group[:-1]))
    size = np.diff(np.append(begins, len(group)))
    begin, others = np.repeat(begins, size), np.repeat(size, size) - 1
    place = np.arange(len(group)) - begin

    def at(number: Ints) -> Floats:
        """The others' value of that number in order."""
        skipped = number + (number >= place)
        return np.asarray(ordered[np.minimum(begin + skipped, len(ordered) - 1)])

    middle = np.where(others > 0, (at((others - 1) // 2) + at(others // 2)) / 2, np.nan)
    result = np.empty(len(values))
    result[order] = middle
    return result
