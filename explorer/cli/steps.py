"""`steps`: each step of each rank."""

from __future__ import annotations

from explorer.cli.options import JsonOption, LimitOption, RankOption, RunArgument, StepOption


def command(
    run: RunArgument,
    limit: LimitOption = 50,
    rank: RankOption = None,
    step: StepOption = None,
    json: JsonOption = False,
) -> int:
    """Each step of each rank: its time, its work, how long its device was busy.

    A step that the edge of the recording cut is marked, and left out of all averages.
    """
    from explorer.cli.reading import read
    from explorer.cli.table import Column

    columns = (
        Column("rank", "Rank", "number", priority=3),
        Column("step", "Step", "number"),
        Column("wall_ns", "Time", "duration", style="bold"),
        Column("busy_ns", "Busy", "duration", priority=1),
        Column("idle_ns", "Idle", "duration", priority=1),
        Column("device", "Device", priority=2),
        Column("ops", "Ops", "number", priority=2),
        Column("kernels", "Kernels", "number", priority=2),
        Column("phase", "Phase", priority=2),
        Column("cut", "", priority=1, style="yellow"),
    )
    return read(
        run,
        lambda opened: opened.steps(),
        columns,
        json=json,
        limit=limit,
        rank=rank,
        step=step,
        shown=lambda row: {**row, "cut": "incomplete" if row["complete"] is False else None},
    )
