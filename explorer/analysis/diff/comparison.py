"""The comparison of two runs: verdict, comparability, and what explains the change."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from explorer.analysis.diff.comparability import Difference, differences
from explorer.analysis.diff.explained import Delta, PathWork, deltas, line_key, matched_lines, path_work
from explorer.analysis.diff.kernel_match import renamed_kernels
from explorer.analysis.diff.noise import Verdict, verdict
from explorer.analysis.phrase import ROOT_MODULE
from explorer.analysis.step_scope import find_scope

if TYPE_CHECKING:
    from explorer.analysis.run import Run

SCHEMA = "neuron-explorer/diff/1"

DIMENSIONS = ("kind", "phase", "module", "line", "op", "kernel")


@dataclass(frozen=True)
class Comparison:
    """Times are of the slowest rank of each run, as recorded. `explained` holds one list of deltas per dimension; in
    each the changes add up to `after_mean_ns - before_mean_ns`."""

    before: str
    after: str
    before_ns: int
    after_ns: int
    before_mean_ns: float
    after_mean_ns: float
    verdict: Verdict
    differences: tuple[Difference, ...]
    explained: dict[str, list[Delta]]

    @property
    def comparable(self) -> bool:
        return not any(difference.weight == "blocks" for difference in self.differences)

    def to_dict(self, limit: int | None = None) -> dict[str, Any]:
        """The JSON document of `diff --json`; `limit` cuts each table."""
        return {
            "schema": SCHEMA,
            "before": self.before,
            "after": self.after,
            "step_before_ns": self.before_ns,
            "step_after_ns": self.after_ns,
            "change_ns": self.after_ns - self.before_ns,
            "verdict": asdict(self.verdict),
            "comparable": self.comparable,
            "differences": [asdict(difference) for difference in self.differences],
            "mean_change_ns": round(self.after_mean_ns - self.before_mean_ns),
            "explained": {
                name: [{**asdict(delta), "change_ns": delta.change_ns} for delta in rows[:limit]]
                for name, rows in self.explained.items()
            },
        }

    def to_json(self, indent: int | None = None) -> str:
        """`to_dict()` as JSON text."""
        return json.dumps(self.to_dict(), ensure_ascii=False, indent=indent)


def compare(before: Run, after: Run) -> Comparison:
    """Compare two runs. Works across devices and vendors: phases, modules, lines and ops keep their names."""
    scope_a, scope_b = find_scope(before.engine), find_scope(after.engine)
    a, b = path_work(before, scope_a.rank), path_work(after, scope_b.rank)
    steps_a, steps_b = _step_times(before, scope_a.rank), _step_times(after, scope_b.rank)
    return Comparison(
        before=before.directory,
        after=after.directory,
        before_ns=_median(steps_a, scope_a.median_ns),
        after_ns=_median(steps_b, scope_b.median_ns),
        before_mean_ns=a.mean_step_ns,
        after_mean_ns=b.mean_step_ns,
        verdict=verdict(steps_a, steps_b),
        differences=tuple(differences(before, after)),
        explained=_explained(a, b),
    )


def _explained(a: PathWork, b: PathWork) -> dict[str, list[Delta]]:
    kernels = renamed_kernels(a.rows, b.rows)
    names = {new: old for old, new in kernels.items()}
    by_kernel = [
        Delta(d.key, d.before_ns, d.after_ns, d.calls_before, d.calls_after, "renamed", f"was {names[d.key]}")
        if d.key in names
        else d
        for d in deltas(a, b, lambda row: row["kernel"], kernels)
    ]
    code = {line_key(row): row["code"] or "" for row in (*a.rows, *b.rows) if line_key(row)}
    code |= {f"{line_key(row)} (removed)": row["code"] or "" for row in a.rows if line_key(row)}
    by_line = [
        Delta(
            d.key,
            d.before_ns,
            d.after_ns,
            d.calls_before,
            d.calls_after,
            d.status,
            code.get(d.key, ""),
        )
        for d in deltas(a, b, line_key, matched_lines(a, b))
    ]
    return {
        "kind": deltas(a, b, lambda row: row["kind"]),
        "phase": deltas(a, b, lambda row: row["phase"]),
        "module": deltas(a, b, lambda row: ROOT_MODULE if row["module"] == "" else row["module"]),
        "line": by_line,
        "op": deltas(a, b, lambda row: row["op"]),
        "kernel": by_kernel,
    }


def _step_times(run: Run, rank: int) -> NDArray[np.int64]:
    rows = run.engine.sql(
        "SELECT duration_ns FROM steps WHERE rank = ? AND complete ORDER BY start_ns", [rank]
    ).arrow()
    return np.asarray(rows.column("duration_ns").to_numpy(), np.int64)


def _median(times: NDArray[np.int64], fallback: int) -> int:
    return int(np.median(times)) if len(times) else fallback
