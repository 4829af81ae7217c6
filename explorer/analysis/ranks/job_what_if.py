"""What the whole job would gain: stragglers at the median's speed, faster communication, perfect overlap.

Each step is replayed over its matched calls, in order: a rank arrives at a call its own work after it left the one before;
a call ends its transfer after the last arrival. Nothing changed gives the recorded step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from explorer.analysis.engine import Engine

_CALLS = """
SELECT w.step, w.match_id, w.rank, w.arrival_ns, w.end_ns, w.last_arrival_ns, w.transfer_ns
FROM collective_waits AS w JOIN rank_steps AS s ON s.rank = w.rank AND s.step IS NOT DISTINCT FROM w.step
WHERE w.ranks_seen > 1 AND s.complete ORDER BY w.step, w.last_arrival_ns, w.match_id, w.rank
"""

_STEPS = """
SELECT s.rank, s.step, s.exposed_communication_ns,
       (s.start_ns - round(c.offset_ns + c.drift_ppb * (s.start_ns - c.reference_ns) / 1e9))::BIGINT AS start_ns, s.wall_ns
FROM rank_steps AS s JOIN rank_clocks AS c USING (rank) WHERE s.complete
"""


@dataclass(frozen=True, slots=True)
class JobPrediction:
    """Median over the complete steps of the time from the first rank's start to the last rank's end, in ns."""

    change: str
    before_ns: int
    after_ns: int

    @property
    def saving_ns(self) -> int:
        return self.before_ns - self.after_ns


@dataclass
class _Step:
    starts: dict[int, int]
    ends: dict[int, int]
    calls: list[list[dict[str, Any]]]


Work = Callable[[int, int, int], float]
"""(rank, number of the stretch in the step, recorded ns) to its changed length."""


def predictions(engine: Engine, factor: float = 2.0) -> list[JobPrediction]:
    """The usual questions, largest saving first: every rank at the median's speed, each straggler alone, communication
    `factor` times as fast, communication free (the bound of perfect overlap)."""
    steps = _load(engine)
    if not steps:
        return []
    usual = _usual(steps)
    ranks = sorted({rank for step in steps for rank in step.starts})
    found = [
        JobPrediction(
            "every rank as fast as the median", *_both(steps, lambda r, n, ns: min(ns, usual.get(n, ns)), 1.0)
        ),
        JobPrediction(f"communication {factor:g} times as fast", *_both(steps, None, 1 / factor)),
        JobPrediction("communication hidden altogether", *_both(steps, None, 0.0)),
    ]
    for rank in ranks:
        alone = lambda r, n, ns, rank=rank: min(ns, usual.get(n, ns)) if r == rank else ns  # noqa: E731
        prediction = JobPrediction(f"rank {rank} as fast as the median", *_both(steps, alone, 1.0))
        if prediction.saving_ns > 0.01 * prediction.before_ns:
            found.append(prediction)
    return sorted(found, key=lambda item: (-item.saving_ns, item.change))


def _load(engine: Engine) -> list[_Step]:
    steps: dict[Any, _Step] = {}
    for row in engine.sql(_STEPS).rows():
        step = steps.setdefault(row["step"], _Step({}, {}, []))
        step.starts[row["rank"]] = row["start_ns"]
        step.ends[row["rank"]] = row["start_ns"] + row["wall_ns"]
    last: Any = None
    for row in engine.sql(_CALLS).rows():
        step = steps[row["step"]]
        if (row["step"], row["match_id"]) != last:
            step.calls.append([])
            last = (row["step"], row["match_id"])
        step.calls[-1].append(row)
    return [step for step in steps.values() if step.calls and len(step.starts) > 1]


def _usual(steps: list[_Step]) -> dict[int, float]:
    """The median length of each stretch of work between calls, over ranks and steps."""
    lengths: dict[int, list[int]] = {}
    for step in steps:
        for _, number, length in _stretches(step):
            lengths.setdefault(number, []).append(length)
    return {number: median(values) for number, values in lengths.items()}


def _stretches(step: _Step) -> list[tuple[int, int, int]]:
    """(rank, number, ns) of the work before each call, and after the last one."""
    free, count = dict(step.starts), dict.fromkeys(step.starts, 0)
    found = []
    for call in step.calls:
        for row in call:
            rank = row["rank"]
            if rank not in free:
                continue
            found.append((rank, count[rank], row["arrival_ns"] - free[rank]))
            free[rank] = row["end_ns"]
            count[rank] += 1
    found += [(rank, count[rank], step.ends[rank] - free[rank]) for rank in free]
    return found


def _both(steps: list[_Step], work: Work | None, transfer: float) -> tuple[int, int]:
    before = [max(step.ends.values()) - min(step.starts.values()) for step in steps]
    after = [_replayed(step, work or (lambda rank, number, ns: ns), transfer) for step in steps]
    return round(median(before)), round(median(after))


def _replayed(step: _Step, work: Work, transfer: float) -> float:
    recorded, count = dict(step.starts), dict.fromkeys(step.starts, 0)
    clock: dict[int, float] = dict(step.starts)
    for call in step.calls:
        rows = [row for row in call if row["rank"] in clock]
        for row in rows:
            rank = row["rank"]
            clock[rank] += work(rank, count[rank], row["arrival_ns"] - recorded[rank])
            recorded[rank] = row["end_ns"]
            count[rank] += 1
        together = max((clock[row["rank"]] for row in rows), default=0.0)
        for row in rows:
            # What a rank recorded after the last arrival is transfer; an early rank's wait follows from the others.
            clock[row["rank"]] = together + transfer * (row["end_ns"] - row["last_arrival_ns"])
    for rank in clock:
        clock[rank] += work(rank, count[rank], step.ends[rank] - recorded[rank])
    return max(clock.values()) - min(step.starts.values())
