"""`memory`: allocated and reserved memory."""

from __future__ import annotations

from explorer.cli.options import JsonOption, RankOption, RunArgument


def command(run: RunArgument, rank: RankOption = None, json: JsonOption = False) -> int:
    """Allocated and reserved memory by rank and device: peak, growth over the recording, churn."""
    from explorer.cli.reading import read
    from explorer.cli.table import Column

    columns = (
        Column("rank", "Rank", "number", priority=3),
        Column("device", "Device"),
        Column("peak_bytes", "Peak", "bytes", style="bold"),
        Column("peak_reserved_bytes", "Reserved", "bytes", priority=1),
        Column("growth_bytes", "Growth", "bytes", priority=1),
        Column("allocations", "Allocations", "number"),
        Column("frees", "Frees", "number", priority=2),
        Column("churn_bytes", "Churn", "bytes"),
    )
    return read(
        run,
        lambda opened: opened.memory(),
        columns,
        json=json,
        rank=rank,
        empty="No allocations were recorded; record with --memory (profile_memory=True in a program).",
    )
