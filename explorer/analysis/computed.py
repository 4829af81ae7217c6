"""Tables that SQL cannot make at scale: computed in code when a statement first names them, then read like any table."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from explorer.model.schema import Column, Table

if TYPE_CHECKING:
    import pyarrow as pa

    from explorer.analysis.engine import Engine

CRITICAL_PATH = Table(
    "critical_path",
    "The critical path of each rank, piece by piece: between the first and the last step every moment belongs to exactly"
    " one piece, so that the pieces of a step add up to its wall time.",
    (
        Column("rank", "int32", "Process rank"),
        Column("step", "int32", "Step the piece lies in; null between steps", nullable=True),
        Column("start_ns", "int64", "Start of the piece", unit="ns"),
        Column("duration_ns", "int64", "Length of the piece", unit="ns"),
        Column(
            "kind",
            "string",
            "Category of the event that was running, or python, idle (host, nothing known), launch_latency, device_gap",
        ),
        Column("event_id", "int64", "The event that was running", nullable=True),
        Column("site_id", "int64", "Responsible source line", nullable=True),
    ),
    sort_by=("start_ns",),
)

COMPUTED: dict[str, tuple[Table, str]] = {
    "critical_path": (CRITICAL_PATH, "explorer.analysis.critical_path.compute"),
}
"""Computed tables by name: their columns, and the module whose `compute(engine)` makes them."""


def compute(name: str, engine: Engine) -> pa.Table:
    """Make a computed table, brought to its documented columns."""
    spec, module = COMPUTED[name]
    table: pa.Table = import_module(module).compute(engine)
    return table.select(list(spec.names)).cast(spec.arrow_schema())
