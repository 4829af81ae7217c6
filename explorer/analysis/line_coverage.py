"""How much of a run's op time and device time has a source line, as sentences, in all and by phase."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from explorer.analysis.run import Run

_WORK = {"host": "op time", "device": "device time"}


@dataclass(frozen=True)
class LineCoverage:
    """Over all ranks: `work` is 'host' or 'device', `sentence` says what share of its time has which kind of line.

    `phase` is None where all phases are together; shares are 0 to 1.
    """

    work: str
    phase: str | None
    time_ns: int
    exact_share: float
    none_share: float
    sentence: str


def line_coverage(run: Run) -> list[LineCoverage]:
    """One entry for op time and one for device time, as far as the run holds any."""
    return [item for item in _coverage(run) if item.phase is None]


def phase_coverage(run: Run) -> list[LineCoverage]:
    """One entry for each phase of op time and of device time, the longest first; none where all is of one phase."""
    items = [item for item in _coverage(run) if item.phase is not None]
    several = {work for work in _WORK if sum(item.work == work for item in items) > 1}
    return [item for item in items if item.work in several]


def _coverage(run: Run) -> list[LineCoverage]:
    rows = run.engine.sql(
        """SELECT work, phase, sum(time_ns)::DOUBLE AS time_ns, sum(exact_ns)::DOUBLE AS exact, sum(shared_ns)::DOUBLE AS shared,
        sum(coarse_ns)::DOUBLE AS coarse, sum(inferred_ns)::DOUBLE AS inferred, sum(unseen_ns)::DOUBLE AS unseen,
        sum(outside_ns)::DOUBLE AS outside
        FROM line_coverage GROUP BY work, phase HAVING sum(time_ns) > 0 ORDER BY work DESC, time_ns DESC, phase NULLS FIRST"""
    ).rows()
    return [_of(row) for row in rows]


def _of(row: Mapping[str, Any]) -> LineCoverage:
    share = {
        name: row[name] / row["time_ns"]
        for name in ("exact", "shared", "coarse", "inferred", "unseen", "outside")
    }
    unseen = "on threads without recorded lines" if row["work"] == "host" else "with no known launching call"
    words = {
        "exact": "to one exact line",
        "shared": "shared by several known lines",
        "coarse": "to a function only",
        "inferred": "to a line by order or time",
        "unseen": f"to none, {unseen}",
        "outside": "to none, outside your code",
    }
    parts = [f"{_percent(share[name])} {text}" for name, text in words.items() if share[name] >= 0.0005]
    subject = _WORK[row["work"]] + (f" of {row['phase']}" if row["phase"] else "")
    return LineCoverage(
        row["work"],
        row["phase"],
        round(row["time_ns"]),
        share["exact"] + share["shared"],
        share["unseen"] + share["outside"],
        f"{subject}: {'; '.join(parts)}.",
    )


def _percent(share: float) -> str:
    return "100 %" if share > 0.9995 else f"{100 * share:.1f} %"
