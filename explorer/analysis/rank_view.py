"""Ranks side by side: a grid of ranks and steps for each measure, and who holds the others up, why and at which line."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Any

from explorer.analysis.phrase import duration_text
from explorer.analysis.ranks.stragglers import PERSISTENT_SHARE, Straggler, stragglers

if TYPE_CHECKING:
    from explorer.analysis.run import Run

MEASURES: dict[str, tuple[str, str]] = {
    "wall_ns": ("step time", "From the start to the end of the step."),
    "own_ns": ("own work", "The step without waiting for other ranks."),
    "wait_ns": ("waiting", "Waiting for other ranks to arrive, with nothing to compute."),
    "compute_ns": ("compute", "The busiest device computed (on the CPU: ops ran)."),
    "communication_ns": ("communication", "Communication ran, waiting inside it included."),
    "data_ns": ("data", "The training thread waited for the next batch."),
    "idle_ns": ("idle", "The busiest device did nothing."),
}
"""What a cell can show: its name and what it means."""

ALONE = ("wall_ns", "compute_ns", "data_ns", "idle_ns")
"""The measures of a run of one rank."""

STRAGGLER_SHARE = 0.05
"""A rank whose compute lies this far above the median of the ranks is named even where no communication was matched."""
MOST_CAUSES = 3
SMALLEST_CAUSE = 0.05
"""Causes of a rank that are named, and how large they are beside its largest."""

_STEPS = """
SELECT s.rank, s.step, s.complete, s.device, s.wall_ns, s.compute_ns, s.communication_ns, s.device_idle_ns AS idle_ns,
       s.host_data_ns AS data_ns, w.wait_ns, w.own_ns
FROM rank_steps AS s LEFT JOIN rank_waits AS w ON w.rank = s.rank AND w.step IS NOT DISTINCT FROM s.step
"""
_STEPS_ALONE = """
SELECT rank, step, complete, device, wall_ns, compute_ns, communication_ns, device_idle_ns AS idle_ns,
       host_data_ns AS data_ns, NULL AS wait_ns, wall_ns AS own_ns
FROM step_rollup
"""


@dataclass(frozen=True)
class RankGrid:
    """`values[measure][rank index][step index]` in ns (None: the rank has no such step), over the busiest device of each
    rank. `ranks` rows: rank, device, steps, and the median of every measure over the complete steps. `late` rows: one per
    cause of each rank that holds the others up: rank, delay_ns per step, share of the step, how, cause, more_ns, where, file,
    line, code. `sentence` says who is slow, if anyone."""

    rank_numbers: list[int]
    step_numbers: list[int]
    measures: tuple[str, ...]
    values: dict[str, list[list[int | None]]]
    ranks: list[dict[str, Any]]
    late: list[dict[str, Any]]
    sentence: str


def rank_grid(run: Run) -> RankGrid:
    """The grid from the roll-ups of the ranks, and the stragglers."""
    several = len(run.ranks) > 1
    rows = run.engine.sql(_STEPS if several else _STEPS_ALONE).rows()
    place = {(row["rank"], row["step"] or 0): row for row in rows}
    ranks = sorted({rank for rank, _ in place})
    steps = sorted({step for _, step in place})
    measures = tuple(MEASURES) if several else ALONE
    values: dict[str, list[list[int | None]]] = {
        measure: [
            [place[rank, step][measure] if (rank, step) in place else None for step in steps]
            for rank in ranks
        ]
        for measure in measures
    }
    table = [_summary(rank, [place[rank, step] for step in steps if (rank, step) in place]) for rank in ranks]
    late = stragglers(run.engine) if several else []
    return RankGrid(ranks, steps, measures, values, table, _late_rows(late), _sentence(table, late))


def _summary(rank: int, rows: list[dict[str, Any]]) -> dict[str, Any]:
    counted = [row for row in rows if row["complete"]] or rows
    summary: dict[str, Any] = {"rank": rank, "device": counted[-1]["device"], "steps": len(counted)}
    for measure in MEASURES:
        known = [row[measure] for row in counted if row[measure] is not None]
        summary[measure] = int(median(known)) if known else None
    return summary


def _late_rows(late: list[Straggler]) -> list[dict[str, Any]]:
    """The first row of a rank says how it is late, each row one cause, the largest first."""
    rows = []
    for straggler in late:
        said: dict[str, Any] = {
            "rank": straggler.rank,
            "delay_ns": straggler.delay_ns,
            "share": straggler.share,
            "how": f"{straggler.steps_last} of {straggler.steps} steps",
        }
        for cause in straggler.causes[:MOST_CAUSES]:
            if cause.more_ns < SMALLEST_CAUSE * straggler.causes[0].more_ns:
                break
            rows.append(
                {
                    **said,
                    "cause": cause.kind,
                    "more_ns": cause.more_ns,
                    "where": f"{cause.file}:{cause.line}" if cause.file else "",
                    "file": cause.file,
                    "line": cause.line,
                    "code": cause.code or "",
                }
            )
            said = {"rank": straggler.rank, "_again": True}
        if not straggler.causes:
            rows.append(said)
    return rows


def _sentence(table: list[dict[str, Any]], late: list[Straggler]) -> str:
    if len(table) < 2:
        return "This run has one rank: there is nothing to compare it with."
    if late:
        worst = late[0]
        steady = worst.steps_last >= PERSISTENT_SHARE * worst.steps
        since = f" since step {worst.first_step}" if steady and worst.first_step is not None else ""
        others = len(late) - 1
        more = f" So {'does' if others == 1 else 'do'} {others} more." if others else ""
        return (
            f"Rank {worst.rank} holds the others up by {duration_text(worst.delay_ns)} a step ({worst.share:.1%}):"
            f" last in {worst.steps_last} of {worst.steps} steps{since}.{more}"
        )
    compute = {row["rank"]: row["compute_ns"] or 0 for row in table}
    middle = median(compute.values())
    slowest = max(compute, key=lambda rank: compute[rank])
    if middle and compute[slowest] > middle * (1 + STRAGGLER_SHARE):
        over = compute[slowest] / middle - 1
        return f"Rank {slowest} computes {over:.0%} longer than the median rank: the others wait for it."
    walls = [row["wall_ns"] or 0 for row in table]
    spread = (max(walls) - min(walls)) / max(max(walls), 1)
    return f"No rank stands out: compute differs by less than {STRAGGLER_SHARE:.0%} from the median, step times by {spread:.1%}."


def heat(grid: RankGrid, measure: str) -> tuple[list[list[float | None]], int, int]:
    """A measure as 0 (its smallest value) to 1 (its largest), and those two values in ns."""
    known = [value for row in grid.values[measure] for value in row if value is not None]
    low, high = min(known, default=0), max(known, default=0)
    span = max(high - low, 1)
    return [[None if v is None else (v - low) / span for v in row] for row in grid.values[measure]], low, high


def telling_measure(grid: RankGrid) -> str:
    """The measure in which ranks differ most, by the step; step time where nothing differs."""
    if len(grid.ranks) < 2:
        return "wall_ns"

    def spread(measure: str) -> float:
        values = [row[measure] or 0 for row in grid.ranks]
        # A measure that is a sliver of the step tells nothing, however much it varies.
        return (max(values) - min(values)) / max(max(row["wall_ns"] or 0 for row in grid.ranks), 1)

    best = max((measure for measure in grid.measures if measure != "idle_ns"), key=spread)
    return best if spread(best) > 0 else "wall_ns"
