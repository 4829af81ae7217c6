"""Ranks side by side: a grid of ranks and steps for each measure, and who makes the others wait."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from explorer.analysis.run import Run

MEASURES: dict[str, tuple[str, str]] = {
    "wall_ns": ("step time", "From the start to the end of the step."),
    "compute_ns": ("compute", "Time in which kernels (on the CPU: ops) ran."),
    "communication_ns": (
        "communication",
        "Time in which communication ran, waiting for slower ranks included.",
    ),
    "exposed_communication_ns": ("exposed communication", "Communication not hidden under compute."),
    "idle_ns": ("idle", "Time in which the device did nothing."),
}

STRAGGLER_SHARE = 0.05
"""A rank whose compute lies this far above the median of the ranks makes the others wait."""


@dataclass(frozen=True)
class RankGrid:
    """`values[measure][rank index][step index]` in ns (None: the rank has no such step), over the busiest device of each
    rank. `ranks` rows: rank, device, steps, and the median of every measure. `sentence` says who is slow, if anyone."""

    rank_numbers: list[int]
    step_numbers: list[int]
    values: dict[str, list[list[int | None]]]
    ranks: list[dict[str, Any]]
    sentence: str


def rank_grid(run: Run) -> RankGrid:
    """The grid from `breakdown`."""
    rows = run.breakdown().rows()
    busiest: dict[int, str] = {}
    busy: dict[tuple[int, str], int] = {}
    for row in rows:
        key = row["rank"], row["device"]
        busy[key] = busy.get(key, 0) + row["busy_ns"]
    for (rank, device), total in sorted(busy.items()):
        if rank not in busiest or total > busy[rank, busiest[rank]]:
            busiest[rank] = device
    own = [row for row in rows if row["device"] == busiest[row["rank"]]]
    numbered = [row for row in own if row["step"] is not None] or own
    ranks = sorted(busiest)
    steps = sorted({row["step"] if row["step"] is not None else 0 for row in numbered})
    place = {(row["rank"], row["step"] if row["step"] is not None else 0): row for row in numbered}
    values: dict[str, list[list[int | None]]] = {
        measure: [
            [place[rank, step][measure] if (rank, step) in place else None for step in steps]
            for rank in ranks
        ]
        for measure in MEASURES
    }
    table = []
    for rank in ranks:
        mine = [row for row in numbered if row["rank"] == rank]
        counted = [row for row in mine if row["complete"]] or mine
        summary: dict[str, Any] = {"rank": rank, "device": busiest[rank], "steps": len(counted)}
        for measure in MEASURES:
            summary[measure] = int(median(row[measure] for row in counted)) if counted else None
        table.append(summary)
    return RankGrid(ranks, steps, values, table, _sentence(table))


def _sentence(table: list[dict[str, Any]]) -> str:
    if len(table) < 2:
        return "This run has one rank: there is nothing to compare it with."
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
    """The measure in which ranks differ most, relative to its largest value; step time where nothing differs."""
    if len(grid.ranks) < 2:
        return "wall_ns"

    def spread(measure: str) -> float:
        values = [row[measure] or 0 for row in grid.ranks]
        # A measure that is a sliver of the step tells nothing, however much it varies.
        return (max(values) - min(values)) / max(max(row["wall_ns"] or 0 for row in grid.ranks), 1)

    best = max(MEASURES, key=spread)
    return best if spread(best) > 0 else "wall_ns"
