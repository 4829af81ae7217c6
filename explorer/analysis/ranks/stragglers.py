"""Who holds the others up, how steadily, at what cost, and where that rank loses its time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from explorer.analysis.ranks.query import query

if TYPE_CHECKING:
    from explorer.analysis.engine import Engine

PERSISTENT_SHARE = 0.6
"""A rank that is last in at least this share of the steps is persistently slow; else its delays are random."""

FEWEST_FOR_PATTERN = 3
"""Fewer steps say nothing about how steady a delay is."""

SMALLEST_SHARE = 0.01
"""Delays below 1 % of the step are not worth a name."""

SMALLEST_EXPLAINED_SHARE = 0.1
"""Of the delay; what explains less of it would send the reader to the wrong place."""

MOST_CAUSES = 5


@dataclass(frozen=True, slots=True)
class Cause:
    """What a straggler does more of than the median rank, in ns per step. `kind` is of the critical path, or compute: its
    device computes longer; `site_id` None: no line is known. Of the `of_steps` steps looked at it is there in `steps`."""

    kind: str
    site_id: int | None
    file: str | None
    line: int | None
    function: str | None
    code: str | None
    more_ns: int
    steps: int = 0
    of_steps: int = 0

    @property
    def comes_again(self) -> bool:
        """Whether it is there in several steps and in at least half of them: what the program does comes again, what the system
        does to it strikes any line."""
        return self.steps > 1 and 2 * self.steps >= self.of_steps


@dataclass(frozen=True, slots=True)
class Straggler:
    """A rank that arrives last.

    `delay_ns`: how much later than the median rank it arrives, per step (the median step of a persistent
    one, the mean of a random one); `pattern` is persistent, random or
    unknown; `first_step` the first step it was last at; `causes` largest first.
    """

    rank: int
    steps_last: int
    steps: int
    delay_ns: int
    share: float
    pattern: str
    first_step: int | None
    residual_ns: int
    causes: tuple[Cause, ...]

    @property
    def cause(self) -> Cause | None:
        """What it does more of from step to step, where that is a part of its delay worth naming; of fewer steps than say how
        steady it is, what it does most more of."""
        known = [cause for cause in self.causes if cause.comes_again or self.pattern == "unknown"]
        return known[0] if known and known[0].more_ns >= SMALLEST_EXPLAINED_SHARE * self.delay_ns else None

    @property
    def is_explained(self) -> bool:
        """Whether its cause makes up at least half of its delay."""
        return self.cause is not None and 2 * self.cause.more_ns >= self.delay_ns

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "causes": [asdict(cause) for cause in self.causes]}


def stragglers(engine: Engine) -> list[Straggler]:
    """Every rank that holds the job up by at least 1 % of a step, worst first. Empty for one rank."""
    rows = engine.sql(query("usable_steps")).arrow()
    rank_of, step_of, wall, caused, compute = (
        rows.column(name).to_numpy() for name in ("rank", "step", "wall_ns", "caused_ns", "compute_ns")
    )
    ranks, first = np.unique(rank_of, return_index=True)
    if len(ranks) < 2:
        return []
    count = len(np.unique(step_of))
    step_ns = float(np.median(wall))
    residual = engine.sql("SELECT max(residual_ns) AS r FROM rank_clocks").rows()[0]["r"] or 0
    late: dict[int, tuple[float, bool, list[int]]] = {}
    for rank, begin, end in zip(ranks.tolist(), first, [*first[1:], len(rank_of)]):
        mine = caused[begin:end]
        last = step_of[begin:end][mine > SMALLEST_SHARE * step_ns]
        persistent = len(last) >= PERSISTENT_SHARE * count
        # A steady delay is not measured by its worst step, rare ones would vanish in a median.
        absent = np.zeros(count - len(mine), np.int64)
        delay = float(np.median(np.append(mine, absent))) if persistent else int(mine.sum()) / count
        if delay >= SMALLEST_SHARE * step_ns and delay > residual:
            late[rank] = (delay, persistent, last.tolist())
    why = causes(engine, {rank: None if steady else last for rank, (_, steady, last) in late.items()})
    mean = np.add.reduceat(compute, first) / np.diff(np.append(first, len(compute)))
    found = []
    for rank, (delay, persistent, last) in late.items():
        pattern = "unknown" if count < FEWEST_FOR_PATTERN else "persistent" if persistent else "random"
        found.append(
            Straggler(
                rank=rank,
                steps_last=len(last),
                steps=count,
                delay_ns=round(delay),
                share=delay / step_ns,
                pattern=pattern,
                first_step=min((step for step in last if step >= 0), default=None),
                residual_ns=round(residual),
                causes=_with_compute(
                    why.get(rank, []), delay, compute[rank_of == rank], float(np.median(mean[ranks != rank]))
                ),
            )
        )
    return sorted(found, key=lambda item: (-item.delay_ns, item.rank))


def _with_compute(
    found: list[Cause], delay_ns: float, own: NDArray[np.int64], others_ns: float
) -> tuple[Cause, ...]:
    """Causes, with longer computation first where it makes up most of the delay and what lies on the critical path does not
    (work on a device that the host need not wait for). `own`: how long it computes in each step; `others_ns`: the others."""
    explained = max((cause.more_ns for cause in found), default=0)
    more_ns = float(own.mean()) - others_ns
    if more_ns > delay_ns / 2 > explained:
        steps = int(np.count_nonzero(own - others_ns >= more_ns / 2))
        return (Cause("compute", None, None, None, None, None, round(more_ns), steps, len(own)), *found)
    return tuple(found)


def causes(engine: Engine, steps: Mapping[int, Sequence[int] | None]) -> dict[int, list[Cause]]:
    """Where each of some ranks spends more than the median of the others, over its steps (None: all), largest first."""
    if not steps:
        return {}
    pairs = [(rank, step) for rank, chosen in steps.items() for step in chosen or () if step >= 0]
    rows = engine.sql(
        query("straggler_causes"),
        {
            "ranks": list(steps),
            "late": [rank for rank, _ in pairs],
            "steps": [step for _, step in pairs],
            "most": MOST_CAUSES,
        },
    ).rows()
    found: dict[int, list[Cause]] = {}
    for row in rows:
        found.setdefault(row.pop("straggler"), []).append(Cause(**row))
    return found
