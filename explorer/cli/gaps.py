"""`gaps`: when a device did nothing, and why."""

from __future__ import annotations

from explorer.cli.options import JsonOption, LimitOption, ModeOption, RankOption, RunArgument, StepOption


def command(
    run: RunArgument,
    limit: LimitOption = 20,
    rank: RankOption = None,
    step: StepOption = None,
    mode: ModeOption = "native",
    json: JsonOption = False,
) -> int:
    """When a device did nothing and why, longest first.

    The cause is what the host was doing meanwhile (python, data, io, sync ...), or launch where the next work had been
    enqueued and had not begun. The line is the one that was executing, or that is responsible for the work that ended
    the gap.
    """
    from explorer.analysis.phrase import place
    from explorer.cli.peer_columns import PEER_COLUMNS
    from explorer.cli.reading import read, step_of_mode
    from explorer.cli.table import Column

    columns = (
        Column("duration_ns", "Idle", "duration", style="bold"),
        Column("cause", "Cause"),
        Column("rank", "Rank", "number", priority=4),
        Column("device", "Device", priority=2),
        Column("step", "Step", "number", priority=1),
        Column("next_id", "Ended by event", "text", priority=3),
        Column("where", "Line", "path", flexible=True, style="cyan"),
        Column("code", "Code", flexible=True),
    )
    return read(
        run,
        lambda opened: opened.gaps(mode),
        columns if mode == "native" else PEER_COLUMNS.get(("gaps", mode), ()),
        json=json,
        limit=limit,
        rank=rank,
        step=step_of_mode(step, mode),
        order="duration_ns" if mode == "native" else "",
        shown=(lambda row: {**row, "where": place(row)}) if mode == "native" else None,
        empty="No device was ever idle.",
    )
