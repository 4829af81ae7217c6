"""How much of a run's op time and device time has a source line, as sentences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from explorer.analysis.run import Run

_WORK = {"host": "op time", "device": "device time"}


@dataclass(frozen=True)
class LineCoverage:
    """Over all ranks: `work` is 'host' or 'device', `sentence` says what share of its time has which kind of line."""

    work: str
    exact_share: float
    none_share: float
    sentence: str


def line_coverage(run: Run) -> list[LineCoverage]:
    """One entry for op time and one for device time, as far as the run holds any."""
    rows = run.engine.sql(
        """SELECT work, sum(time_ns)::DOUBLE AS time_ns, sum(exact_ns)::DOUBLE AS exact, sum(shared_ns)::DOUBLE AS shared,
        sum(coarse_ns)::DOUBLE AS coarse, sum(inferred_ns)::DOUBLE AS inferred, sum(unseen_ns)::DOUBLE AS unseen,
        sum(outside_ns)::DOUBLE AS outside
        FROM line_coverage WHERE phase IS NULL GROUP BY work HAVING sum(time_ns) > 0 ORDER BY work DESC"""
    ).rows()
    found = []
    for row in rows:
        total = row["time_ns"]
        share = {
            name: row[name] / total for name in ("exact", "shared", "coarse", "inferred", "unseen", "outside")
        }
        unseen = (
            "on threads without recorded lines" if row["work"] == "host" else "with no known launching call"
        )
        words = {
            "exact": "to one exact line",
            "shared": "shared by several known lines",
            "coarse": "to a function only",
            "inferred": "to a line by order or time",
            "unseen": f"to none, {unseen}",
            "outside": "to none, outside your code",
        }
        parts = [f"{_percent(share[name])} {text}" for name, text in words.items() if share[name] >= 0.0005]
        found.append(
            LineCoverage(
                row["work"],
                share["exact"] + share["shared"],
                share["unseen"] + share["outside"],
                f"{_WORK[row['work']]}: {'; '.join(parts)}.",
            )
        )
    return found


def _percent(share: float) -> str:
    return "100 %" if share > 0.9995 else f"{100 * share:.1f} %"
