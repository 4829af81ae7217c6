"""How much of a run's op time and device time has a source line, as sentences, in all and by phase."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from explorer.analysis.run import Run

_WORK = {"host": "op time", "device": "device time"}


@dataclass(frozen=True)
class LineCoverage:
    """Over all ranks: `work` is 'host' or 'device', `sentence` says what share of its time has which kind of line.

    `phase` is None where all phases are together; then `phases` holds each of them, the longest first, unless there is only
    one. Shares are 0 to 1.
    """

    work: str
    phase: str | None
    time_ns: int
    exact_share: float
    none_share: float
    sentence: str
    phases: tuple[LineCoverage, ...] = ()


def line_coverage(run: Run) -> list[LineCoverage]:
    """One entry for op time and one for device time, as far as the run holds any."""
    rows = run.engine.sql(
        """SELECT work, phase, sum(time_ns)::DOUBLE AS time_ns, sum(exact_ns)::DOUBLE AS exact, sum(shared_ns)::DOUBLE AS shared,
        sum(coarse_ns)::DOUBLE AS coarse, sum(inferred_ns)::DOUBLE AS inferred, sum(unseen_ns)::DOUBLE AS unseen,
        sum(outside_ns)::DOUBLE AS outside
        FROM line_coverage GROUP BY work, phase HAVING sum(time_ns) > 0 ORDER BY work DESC, time_ns DESC, phase NULLS FIRST"""
    ).rows()
    items = [_of(row) for row in rows]
    found = []
    for item in items:
        if item.phase is None:
            phases = tuple(part for part in items if part.work == item.work and part.phase is not None)
            found.append(replace(item, phases=phases if len(phases) > 1 else ()))
    return found


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
