"""`ops`: framework ops by name."""

from __future__ import annotations

from explorer.cli.options import JsonOption, LimitOption, RankOption, RunArgument


def command(
    run: RunArgument, limit: LimitOption = 20, rank: RankOption = None, json: JsonOption = False
) -> int:
    """Framework ops by name, costliest first.

    Self is the host time of the op without the ops it calls; Device is the time of the kernels and copies it launched
    itself.
    """
    from explorer.cli.reading import read
    from explorer.cli.table import Column

    columns = (
        Column("name", "Op", flexible=True),
        Column("calls", "Calls", "number"),
        Column("self_ns", "Self", "duration"),
        Column("share", "Self %", "share"),
        Column("total_ns", "Total", "duration", priority=1),
        Column("device_ns", "Device", "duration", priority=1),
        Column("device_share", "Device %", "share", priority=2),
        Column("p50_ns", "Median", "duration", priority=3),
        Column("p95_ns", "95 %", "duration", priority=4),
        Column("max_ns", "Longest", "duration", priority=5),
        Column("kernels", "Kernels", "number", priority=6),
    )
    return read(
        run,
        lambda opened: opened.ops(),
        columns,
        json=json,
        limit=limit,
        rank=rank,
        empty="No framework ops were recorded.",
    )
