"""`breakdown`: where each step's time goes on each device."""

from __future__ import annotations

from explorer.cli.options import JsonOption, LimitOption, ModeOption, RankOption, RunArgument, StepOption


def command(
    run: RunArgument,
    limit: LimitOption = 50,
    rank: RankOption = None,
    step: StepOption = None,
    mode: ModeOption = "native",
    json: JsonOption = False,
) -> int:
    """Where each step's time goes on each device, in four parts that add up to it exactly.

    Compute: kernels ran. Communication and copies: only they ran (what is hidden under compute does not count). Idle:
    nothing ran. On a rank without device events the device is cpu and its compute is the time in framework ops.
    """
    from explorer.cli.peer_columns import PEER_COLUMNS
    from explorer.cli.reading import read, step_of_mode
    from explorer.cli.table import Column

    columns = (
        Column("rank", "Rank", "number", priority=3),
        Column("device", "Device", priority=2),
        Column("step", "Step", "number"),
        Column("wall_ns", "Time", "duration", style="bold"),
        Column("compute_ns", "Compute", "duration"),
        Column("exposed_communication_ns", "Communication", "duration"),
        Column("exposed_copy_ns", "Copies", "duration"),
        Column("idle_ns", "Idle", "duration"),
        Column("communication_overlap_ns", "Hidden comm.", "duration", priority=4),
        Column("phase", "Phase", priority=4),
    )
    return read(
        run,
        lambda opened: opened.breakdown(mode),
        columns if mode == "native" else PEER_COLUMNS.get(("breakdown", mode), ()),
        json=json,
        limit=limit,
        rank=rank,
        step=step_of_mode(step, mode),
    )
