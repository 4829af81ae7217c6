"""The steps that findings speak about: the complete steps of the slowest rank."""

from __future__ import annotations

from dataclasses import dataclass

from explorer.analysis.engine import Engine

Span = tuple[int, int]

OUTLIER_FACTOR = 3.0
"""A step this many times longer than the median holds something that does not happen in each step (a compilation, a
checkpoint, a warm-up). Such steps stay in `all_numbers`, where rules about rare events look for them."""

WARM_UP_FACTOR = 1.5
"""The first captured step is left out beyond this multiple of the median: it often holds set-up and first-call work."""


@dataclass(frozen=True, slots=True)
class StepScope:
    """`numbers` are the steps in scope (empty: the run has no steps and counts as one); times are as recorded."""

    rank: int
    numbers: tuple[int, ...]
    all_numbers: tuple[int, ...]
    median_ns: int
    total_ns: int
    """Sum over the steps in scope"""
    start_ns: int
    end_ns: int
    complete: bool
    spans: tuple[Span, ...] = ()
    """(start_ns, end_ns) of each step in scope, in time order"""

    @property
    def count(self) -> int:
        return max(1, len(self.numbers))

    @property
    def mean_ns(self) -> int:
        return self.total_ns // self.count

    def where(self, alias: str) -> str:
        """SQL condition for a table with rank and step."""
        return f"{alias}.rank = {self.rank}{_numbers(alias, self.numbers)}"

    def where_steps(self, alias: str) -> str:
        """SQL condition: the steps in scope, on any rank."""
        return "TRUE" + _numbers(alias, self.numbers)

    def where_all(self, alias: str) -> str:
        """The same with the outlier steps, but for the first step of several: its set-up happens once."""
        return f"{alias}.rank = {self.rank}{_numbers(alias, self.later_numbers)}"

    @property
    def later_numbers(self) -> tuple[int, ...]:
        """All complete steps but the first of several."""
        return self.all_numbers[1:] if len(self.all_numbers) > 2 else self.all_numbers


def _numbers(alias: str, numbers: tuple[int, ...]) -> str:
    if not numbers:
        return ""
    first, last = numbers[0], numbers[-1]
    text = (
        f" AND {alias}.step = {first}" if first == last else f" AND {alias}.step BETWEEN {first} AND {last}"
    )
    missing = [number for number in range(first, last + 1) if number not in set(numbers)]
    if len(missing) > len(numbers):
        return f" AND {alias}.step IN ({', '.join(map(str, numbers))})"
    return text + (f" AND {alias}.step NOT IN ({', '.join(map(str, missing))})" if missing else "")


def find_scope(engine: Engine) -> StepScope:
    """The slowest rank by median complete step, and its complete steps without outliers.

    Incomplete steps serve where no step is complete; a run without steps is one step, as long as its `rank_extent`.
    """
    rows = engine.sql(
        """WITH usable AS (
          SELECT *, bool_or(complete) OVER (PARTITION BY rank) AS some_complete FROM steps
        ),
        kept AS (
          SELECT *, median(duration_ns) OVER (PARTITION BY rank) AS median_ns FROM usable
          WHERE duration_ns > 0 AND (complete OR NOT some_complete)
        )
        SELECT rank, step, start_ns, duration_ns, complete, median_ns FROM kept
        WHERE rank = (SELECT arg_max(rank, (median_ns, -rank)) FROM kept) ORDER BY start_ns"""
    ).rows()
    if not rows:
        rank = engine.reader.ranks[0]
        found = engine.sql(
            # As everywhere (`rank_extent`); where all is of unknown kind, that is all there is.
            """WITH unknown AS (
              SELECT rank, min(start_ns) AS start_ns, max(end_ns) AS end_ns FROM track_extents
              WHERE rank NOT IN (SELECT rank FROM rank_extent) GROUP BY rank
            )
            SELECT rank, start_ns, end_ns FROM (SELECT rank, start_ns, end_ns FROM rank_extent UNION ALL FROM unknown)
            ORDER BY end_ns - start_ns DESC, rank LIMIT 1"""
        ).rows()
        if not found:
            return StepScope(rank, (), (), 0, 0, 0, 0, False)
        start, end = found[0]["start_ns"], found[0]["end_ns"]
        return StepScope(
            found[0]["rank"], (), (), end - start, end - start, start, end, False, ((start, end),)
        )
    median = float(rows[0]["median_ns"])
    steady = [row for row in rows if row["duration_ns"] <= OUTLIER_FACTOR * median] or rows
    if len(steady) > 2 and steady[0] is rows[0] and rows[0]["duration_ns"] > WARM_UP_FACTOR * median:
        steady = steady[1:]
    return StepScope(
        rank=rows[0]["rank"],
        numbers=tuple(sorted({row["step"] for row in steady})),
        all_numbers=tuple(sorted({row["step"] for row in rows})),
        median_ns=round(median),
        total_ns=sum(row["duration_ns"] for row in steady),
        start_ns=min(row["start_ns"] for row in steady),
        end_ns=max(row["start_ns"] + row["duration_ns"] for row in steady),
        complete=all(row["complete"] for row in steady),
        spans=tuple((row["start_ns"], row["start_ns"] + row["duration_ns"]) for row in steady),
    )
