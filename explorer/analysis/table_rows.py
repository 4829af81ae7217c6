"""Rows of ops, kernels and modules with what screens draw beside them: shares for bars and totals over steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from explorer.analysis.run import Run

SPARK_STEPS = 64
"""Steps (or groups of neighbouring steps) in a series over steps."""


def op_rows(run: Run) -> list[dict[str, Any]]:
    """`ops` with `share_bar` (the larger of both shares) and `per_step` (self time in each step)."""
    rows = run.ops().rows()
    series = _per_step(
        run,
        "SELECT name, step, sum(self_ns) AS t FROM events WHERE category = 'op' AND step IS NOT NULL GROUP BY name, step",
    )
    for row in rows:
        row["share_bar"] = max(row["share"], row["device_share"])
        row["per_step"] = series.get(row["name"], [])
    return rows


def kernel_rows(run: Run) -> list[dict[str, Any]]:
    """`kernels`, longest first, with `share_bar` and `per_step` (device time in each step, over all devices)."""
    rows = run.kernels().rows()
    series = _per_step(
        run,
        "SELECT name, step, sum(duration_ns) AS t FROM device_events WHERE step IS NOT NULL GROUP BY name, step",
    )
    for row in rows:
        row["share_bar"] = row["share"]
        row["per_step"] = series.get(row["name"], [])
    return sorted(rows, key=lambda row: -row["total_ns"])


def module_rows(run: Run) -> list[dict[str, Any]]:
    """`modules_time` as a tree: `tree` is the module's own name, indented, below the module that holds it."""
    rows = run.modules().rows()
    children: dict[str, list[dict[str, Any]]] = {}
    paths = {row["path"] for row in rows}
    for row in rows:
        row["share_bar"] = max(row["share"] or 0, row["device_share"] or 0)
        parent = row["path"].rpartition(".")[0] if row["path"] else None
        while parent is not None and parent not in paths:
            parent = parent.rpartition(".")[0] if parent else None
        children.setdefault(parent if parent is not None and row["path"] else "\0", []).append(row)
    ordered: list[dict[str, Any]] = []

    def place(key: str, depth: int) -> None:
        for row in sorted(children.pop(key, []), key=lambda r: -(r["device_ns"] + r["total_ns"])):
            own = row["path"] if depth == 0 else row["path"].removeprefix(key + ".") if key else row["path"]
            row["tree"] = "  " * depth + (own or "(model)")
            ordered.append(row)
            place(row["path"], depth + 1)

    place("\0", 0)
    return ordered


def _per_step(run: Run, sql: str) -> dict[str, list[float]]:
    """Totals by name over the steps, zero where a step has none; neighbouring steps join where there are many."""
    steps = [row["step"] for row in run.engine.sql("SELECT DISTINCT step FROM steps ORDER BY step").rows()]
    if not steps:
        return {}
    group = -(-len(steps) // SPARK_STEPS)
    place = {step: index // group for index, step in enumerate(steps)}
    width = -(-len(steps) // group)
    series: dict[str, list[float]] = {}
    for row in run.engine.sql(sql).rows():
        if row["step"] in place:
            values = series.setdefault(row["name"], [0.0] * width)
            values[place[row["step"]]] += float(row["t"])
    return series
