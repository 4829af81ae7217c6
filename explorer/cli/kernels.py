"""`kernels`: device work by name."""

from __future__ import annotations

from explorer.cli.options import JsonOption, LimitOption, ModeOption, RankOption, RunArgument


def command(
    run: RunArgument,
    limit: LimitOption = 20,
    rank: RankOption = None,
    mode: ModeOption = "native",
    json: JsonOption = False,
) -> int:
    """Kernels, copies and collectives by name, costliest first.

    Total is a sum of durations; Share its part of all device time.
    """
    from explorer.cli.peer_columns import PEER_COLUMNS
    from explorer.cli.reading import read
    from explorer.cli.table import Column

    columns = (
        Column("share", "Share", "share", style="bold"),
        Column("total_ns", "Total", "duration"),
        Column("calls", "Calls", "number"),
        Column("mean_ns", "Mean", "duration", priority=1),
        Column("p50_ns", "Median", "duration", priority=3),
        Column("p95_ns", "95 %", "duration", priority=4),
        Column("max_ns", "Longest", "duration", priority=2),
        Column("category", "Kind", priority=1),
        Column("device", "Device", priority=5),
        Column("name", "Name", flexible=True, style="cyan"),
    )
    return read(
        run,
        lambda opened: opened.kernels(mode),
        columns if mode == "native" else PEER_COLUMNS.get(("kernels", mode), ()),
        json=json,
        limit=limit,
        rank=rank,
        empty="No device work was recorded; neuron-explorer ops shows what ran on the host.",
    )
