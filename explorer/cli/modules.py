"""`modules`: time by nn.Module."""

from __future__ import annotations

from explorer.cli.options import JsonOption, LimitOption, RankOption, RunArgument


def command(
    run: RunArgument, limit: LimitOption = 20, rank: RankOption = None, json: JsonOption = False
) -> int:
    """Time by nn.Module, its own and with everything below it; forward, backward, and forward again where activations are
    recomputed."""
    from explorer.analysis.phrase import ROOT_MODULE
    from explorer.cli.reading import read
    from explorer.cli.table import Column

    columns = (
        Column("device_share", "Device %", "share", style="bold", priority=1),
        Column("device_ns", "Device", "duration", priority=1),
        Column("share", "Host %", "share", style="bold"),
        Column("total_ns", "Host", "duration"),
        Column("self_ns", "Own", "duration", priority=2),
        Column("forward_ns", "Forward", "duration", priority=3),
        Column("backward_ns", "Backward", "duration", priority=3),
        Column("recompute_ns", "Again", "duration", priority=4),
        Column("ops", "Ops", "number", priority=5),
        Column("path", "Module", "path", flexible=True, style="cyan"),
        Column("class_name", "Class", flexible=True),
    )
    return read(
        run,
        lambda opened: opened.modules(),
        columns,
        json=json,
        limit=limit,
        rank=rank,
        shown=lambda row: {**row, "path": row["path"] or ROOT_MODULE},
        empty="No modules were recorded.",
    )
