"""What the whole job would gain: stragglers at the median's speed, faster communication, perfect overlap.

Each step is replayed over its meetings, in order: a rank arrives at a meeting its own work after it left the one before; a
meeting ends its transfer after the last arrival. A meeting is a call, or several that overlap on a rank (the buckets of
one backward pass): a rank has arrived when it has started the last of them. Nothing changed gives the recorded step.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from explorer.analysis.engine import Engine

_CALLS = """
SELECT w.step, w.match_id, w.rank, w.arrival_ns, w.end_ns
FROM collective_waits AS w JOIN rank_waits AS s ON s.rank = w.rank AND s.step IS NOT DISTINCT FROM w.step
WHERE w.ranks_seen > 1 AND s.complete AND NOT s.disturbed ORDER BY w.step, w.arrival_ns, w.match_id, w.rank
"""

_STEPS = """
SELECT s.rank, s.step, s.exposed_communication_ns,
       s.start_ns - round(c.offset_ns + c.drift_ppb * (s.start_ns - c.reference_ns) / 1e9)::BIGINT AS start_ns, s.wall_ns
FROM rank_steps AS s JOIN rank_clocks AS c USING (rank)
JOIN rank_waits AS w ON w.rank = s.rank AND w.step IS NOT DISTINCT FROM s.step WHERE s.complete AND NOT w.disturbed
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
            "every rank as fast as the median",
            *_both(steps, lambda r, n, ns: min(ns, usual.get((r, n), ns)), 1.0),
        ),
        JobPrediction(f"communication {factor:g} times as fast", *_both(steps, None, 1 / factor)),
        JobPrediction("communication hidden altogether", *_both(steps, None, 0.0)),
    ]
    for rank in ranks:
        alone = lambda r, n, ns, rank=rank: min(ns, usual.get((r, n), ns)) if r == rank else ns  # noqa: E731
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
    rows: dict[Any, list[dict[str, Any]]] = {}
    for row in engine.sql(_CALLS).rows():
        rows.setdefault(row["step"], []).append(row)
    for number, found in rows.items():
        steps[number].calls = meetings(found)
    return [step for step in steps.values() if step.calls and len(step.starts) > 1]


def meetings(rows: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Calls (one row per rank, by arrival) joined where they overlap on a rank; each meeting has one row per rank with
    arrival_ns (its last), end_ns (its last) and last_arrival_ns (of all), and meetings come by last arrival."""
    joined: dict[int, int] = {}

    def root(match: int) -> int:
        while joined.setdefault(match, match) != match:
            match = joined[match]
        return match

    open_until: dict[int, tuple[int, int]] = {}
    for row in rows:
        end, match = open_until.get(row["rank"], (row["arrival_ns"], row["match_id"]))
        if row["arrival_ns"] < end:
            joined[root(row["match_id"])] = root(match)
        if row["end_ns"] >= end:
            open_until[row["rank"]] = (row["end_ns"], row["match_id"])
    found: dict[int, dict[int, dict[str, Any]]] = {}
    for row in rows:
        members = found.setdefault(root(row["match_id"]), {})
        one = members.setdefault(row["rank"], {"rank": row["rank"], "arrival_ns": 0, "end_ns": 0})
        one["arrival_ns"] = max(one["arrival_ns"], row["arrival_ns"])
        one["end_ns"] = max(one["end_ns"], row["end_ns"])
    result = []
    for members in found.values():
        last = max(one["arrival_ns"] for one in members.values())
        result.append([{**one, "last_arrival_ns": last} for one in members.values()])
    return sorted(result, key=lambda meeting: meeting[0]["last_arrival_ns"])


def _usual(steps: list[_Step]) -> dict[tuple[int, int], float]:
    """(rank, number of the stretch) to the median of the other ranks, each at its own median over steps."""
    lengths: dict[int, dict[int, list[int]]] = {}
    for step in steps:
        for rank, number, length in _stretches(step):
            lengths.setdefault(number, {}).setdefault(rank, []).append(length)
    found: dict[tuple[int, int], float] = {}
    for number, ranks in lengths.items():
        own = {rank: median(values) for rank, values in ranks.items()}
        ordered = sorted(own.values())
        for rank, value in own.items():
            place = bisect.bisect_left(ordered, value)
            others = ordered[:place] + ordered[place + 1 :]
            if others:
                found[rank, number] = median(others)
    return found


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
        alone: dict[int, float] = {}
        for row in rows:
            rank = row["rank"]
            clock[rank] += work(rank, count[rank], row["arrival_ns"] - recorded[rank])
            recorded[rank] = row["end_ns"]
            count[rank] += 1
            if row["end_ns"] < row["last_arrival_ns"]:
                # It had left before the last one came (a buffered send): it waits for nobody.
                alone[rank] = clock[rank] + transfer * (row["end_ns"] - row["arrival_ns"])
        together = max((clock[row["rank"]] for row in rows), default=0.0)
        for row in rows:
            # What a rank recorded after the last arrival is transfer; an early rank's wait follows from the others.
            if row["rank"] in alone:
                clock[row["rank"]] = alone[row["rank"]]
                continue
            clock[row["rank"]] = together + transfer * (row["end_ns"] - row["last_arrival_ns"])
    for rank in clock:
        clock[rank] += work(rank, count[rank], step.ends[rank] - recorded[rank])
    return max(clock.values()) - min(step.starts.values())
