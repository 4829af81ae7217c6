"""`launches`: how far ahead of the device the host was."""

from __future__ import annotations

from typing import Annotated

import typer

from explorer.cli.options import JsonOption, LimitOption, ModeOption, RankOption, RunArgument, StepOption
from explorer.model.errors import UsageError


def command(
    run: RunArgument,
    queue: Annotated[bool, typer.Option("--queue", help="Queue depth by stream instead")] = False,
    limit: LimitOption = 20,
    rank: RankOption = None,
    step: StepOption = None,
    mode: ModeOption = "native",
    json: JsonOption = False,
) -> int:
    """How far ahead of the device the host was: each device event with the call that enqueued it, longest delay first.

    Delay: from the end of the call to the start on the device. Depth: events of the stream enqueued and not started when
    the call began, this one included; 1 means the device was waiting for it. Any launching call counts: CUDA runtime
    and driver, HIP, XPU, NPU, graph launches.
    """
    from explorer.cli.peer_columns import PEER_COLUMNS
    from explorer.cli.reading import read, step_of_mode
    from explorer.cli.table import Column

    if queue and step is not None:
        raise UsageError("--step does not go with --queue: its rows are of the whole run.")
    what = "queue" if queue else "launches"
    native = {
        "launches": (
            Column("delay_ns", "Delay", "duration", style="bold"),
            Column("launch_ns", "Call", "duration"),
            Column("duration_ns", "Work", "duration"),
            Column("queue_depth", "Depth", "number"),
            Column("launch_name", "Called", priority=1),
            Column("rank", "Rank", "number", priority=4),
            Column("stream", "Stream", priority=3),
            Column("step", "Step", "number", priority=2),
            Column("name", "Name", flexible=True, style="cyan"),
        ),
        "queue": (
            Column("rank", "Rank", "number", priority=4),
            Column("stream", "Stream"),
            Column("launches", "Launches", "number"),
            Column("mean_depth", "Mean depth", "rate"),
            Column("max_depth", "Most", "number"),
            Column("empty_share", "Onto an empty queue", "share"),
            Column("full_share", "Onto a full one", "share", priority=1),
        ),
    }
    return read(
        run,
        lambda opened: opened.queue(mode) if queue else opened.launches(mode),
        native[what] if mode == "native" else PEER_COLUMNS.get((what, mode), ()),
        json=json,
        limit=limit,
        rank=rank,
        step=step_of_mode(step, mode),
        order="" if queue else "delay_ns" if mode == "native" else "launch_delay_us",
        empty="No device event has a launching call in this run.",
    )
