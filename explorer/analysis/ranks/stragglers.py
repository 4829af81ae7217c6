"""Who holds the others up, how steadily, at what cost, and where that rank loses its time."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from statistics import median
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from explorer.analysis.engine import Engine

PERSISTENT_SHARE = 0.6
"""A rank that is last in at least this share of the steps is persistently slow; else its delays are random."""

FEWEST_FOR_PATTERN = 3
"""Fewer steps say nothing about how steady a delay is."""

SMALLEST_SHARE = 0.01
"""Delays below 1 % of the step are not worth a name."""


@dataclass(frozen=True, slots=True)
class Cause:
    """What a straggler does more of than the median rank, in ns per step. `kind` is of the critical path; `site_id` None:
    no line is known."""

    kind: str
    site_id: int | None
    file: str | None
    line: int | None
    function: str | None
    code: str | None
    more_ns: int


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

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "causes": [asdict(cause) for cause in self.causes]}


def stragglers(engine: Engine) -> list[Straggler]:
    """Every rank that holds the job up by at least 1 % of a step, worst first. Empty for one rank."""
    rows = engine.sql("SELECT * FROM rank_waits WHERE complete AND NOT disturbed").rows()
    ranks = sorted({row["rank"] for row in rows})
    if len(ranks) < 2:
        return []
    steps = sorted({row["step"] for row in rows}, key=lambda step: (step is None, step))
    step_ns = median(row["wall_ns"] for row in rows)
    residual = engine.sql("SELECT max(residual_ns) AS r FROM rank_clocks").rows()[0]["r"]
    found = []
    for rank in ranks:
        mine = [row for row in rows if row["rank"] == rank]
        caused = [row["caused_ns"] for row in mine] + [0] * (len(steps) - len(mine))
        last = [row["step"] for row in mine if row["caused_ns"] > SMALLEST_SHARE * step_ns]
        persistent = len(last) >= PERSISTENT_SHARE * len(steps)
        # A steady delay is not measured by its worst step, rare ones would vanish in a median.
        delay = median(caused) if persistent else sum(caused) / len(steps)
        if delay < SMALLEST_SHARE * step_ns or delay <= (residual or 0):
            continue
        pattern = "unknown" if len(steps) < FEWEST_FOR_PATTERN else "persistent" if persistent else "random"
        found.append(
            Straggler(
                rank=rank,
                steps_last=len(last),
                steps=len(steps),
                delay_ns=round(delay),
                share=delay / step_ns,
                pattern=pattern,
                first_step=min((s for s in last if s is not None), default=None),
                residual_ns=round(residual or 0),
                causes=tuple(causes(engine, rank, None if persistent else last)),
            )
        )
    return sorted(found, key=lambda item: (-item.delay_ns, item.rank))


_CAUSES = """
WITH chosen AS (
    SELECT p.rank, p.kind, p.site_id, p.duration_ns FROM rank_path AS p
    JOIN rank_waits AS w ON w.rank = p.rank AND w.step IS NOT DISTINCT FROM p.step AND w.complete AND NOT w.disturbed
    WHERE $all OR p.step IN (SELECT unnest($steps::INTEGER[]))
), counted AS (
    SELECT rank, count(DISTINCT step) AS steps FROM rank_waits
    WHERE complete AND NOT disturbed AND ($all OR step IN (SELECT unnest($steps::INTEGER[]))) GROUP BY rank
), per_rank AS (
    SELECT rank, kind, site_id, sum(duration_ns) / greatest(any_value(steps), 1) AS per_step_ns
    FROM chosen JOIN counted USING (rank) GROUP BY rank, kind, site_id
), places AS (
    SELECT DISTINCT kind, site_id FROM per_rank
), filled AS (
    SELECT c.rank, p.kind, p.site_id, coalesce(r.per_step_ns, 0) AS per_step_ns
    FROM places AS p CROSS JOIN counted AS c
    LEFT JOIN per_rank AS r ON r.rank = c.rank AND r.kind = p.kind AND r.site_id IS NOT DISTINCT FROM p.site_id
), compared AS (
    SELECT kind, site_id, max(per_step_ns) FILTER (rank = $rank) - coalesce(median(per_step_ns) FILTER (rank <> $rank), 0) AS more_ns
    FROM filled GROUP BY kind, site_id
)
SELECT c.kind, c.site_id, s.file, s.line, s.function, s.code, round(c.more_ns)::BIGINT AS more_ns
FROM compared AS c LEFT JOIN sites AS s USING (site_id)
WHERE c.more_ns > 0 ORDER BY more_ns DESC, c.kind, c.site_id LIMIT 5
"""


def causes(engine: Engine, rank: int, steps: list[int | None] | None) -> list[Cause]:
    """Where a rank spends more than the median of the others, over some steps (None: all), largest first."""
    numbers = [step for step in steps or () if step is not None]
    rows = engine.sql(_CAUSES, {"rank": rank, "all": steps is None or not numbers, "steps": numbers}).rows()
    return [Cause(**row) for row in rows]
