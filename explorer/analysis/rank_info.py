"""How each rank was recorded, from its manifest: the computed table `rank_info`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from explorer.model.schema import Column, Table

if TYPE_CHECKING:
    import pyarrow as pa

    from explorer.analysis.engine import Engine

RANK_INFO = Table(
    "rank_info",
    "How each rank was recorded, from its manifest, with the measured cost of recording.",
    (
        Column("rank", "int32", "Process rank"),
        Column("made_by", "string", "capture, import or generator"),
        Column("finished", "bool", "False where the process ended before the run was closed"),
        Column("tool_version", "string", "Version that wrote it"),
        Column("created_ns", "int64", "When", unit="ns"),
        Column("world_size", "int32", "Ranks of the job", nullable=True),
        Column("command", "string", "Command line, secrets masked", nullable=True),
        Column("git_commit", "string", "Commit of the user's program", nullable=True),
        Column("op_cost_ns", "float64", "Measured cost of recording one op; 0 where unknown", unit="ns"),
        Column("line_cost_ns", "float64", "Measured cost of recording one line; 0 where unknown", unit="ns"),
        Column(
            "call_cost_ns",
            "float64",
            "Measured cost of looking at one call of library code; 0 where unknown",
            unit="ns",
        ),
        Column(
            "module_cost_ns",
            "float64",
            "Measured cost of recording one call of an nn.Module; 0 where unknown",
            unit="ns",
        ),
    ),
)


def compute(engine: Engine) -> pa.Table:
    """One row per rank."""
    import pyarrow as pa

    rows = [
        {
            "rank": manifest.rank,
            "made_by": manifest.made_by,
            "finished": manifest.finished,
            "tool_version": manifest.tool_version,
            "created_ns": manifest.created_ns,
            "world_size": manifest.world_size,
            "command": " ".join(manifest.command) or None,
            "git_commit": manifest.git_commit,
            "op_cost_ns": _cost(manifest.cost.get("op_ns")),
            "line_cost_ns": _cost(manifest.cost.get("line_ns")),
            "call_cost_ns": _cost(manifest.cost.get("call_ns")),
            "module_cost_ns": _cost(manifest.cost.get("module_ns")),
        }
        for manifest in engine.reader.manifests.values()
    ]
    return pa.Table.from_pylist(rows, RANK_INFO.arrow_schema())


def _cost(value: object) -> float:
    return float(value) if isinstance(value, int | float) and value > 0 else 0.0
