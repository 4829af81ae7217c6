"""`roofline`: what each op achieved against what the device could do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from explorer.cli.options import JsonOption, LimitOption, RunArgument

if TYPE_CHECKING:
    from explorer.analysis.run import Run


def command(
    run: RunArgument,
    by: Annotated[str, typer.Option("--by", help="op, line, or step (model FLOPs utilisation)")] = "op",
    measure_cpu: Annotated[
        bool, typer.Option("--measure-cpu", help="First measure this machine's CPU, for runs recorded here")
    ] = False,
    limit: LimitOption = 20,
    json: JsonOption = False,
) -> int:
    """What each op achieved against what the device could do.

    Operations and bytes come from the recorded input shapes (record_shapes); peaks from the vendors' data sheets, or
    measured. Efficiency is the least time the device needs over the time it took.
    """
    from explorer.analysis.phrase import place
    from explorer.cli.reading import read
    from explorer.cli.table import Column

    if measure_cpu:
        from explorer.collectors.capture.cpu_peak import measure

        measure()
    rates = (
        Column("achieved_flops", "Computes", "flop_rate"),
        Column("achieved_bandwidth", "Moves", "byte_rate"),
        Column("efficiency", "Efficiency", "share"),
    )
    columns = {
        "op": (
            Column("time_ns", "Time", "duration", style="bold"),
            Column("name", "Op", flexible=True),
            Column("shapes", "Shapes", flexible=True, priority=2),
            Column("dtype", "Type", priority=1),
            Column("calls", "Calls", "number", priority=1),
            *rates,
            Column("bound", "Bound", priority=1),
            Column("lost_ns", "Above least", "duration"),
            Column("problem", "Why not", flexible=True, priority=3),
        ),
        "line": (
            Column("time_ns", "Time", "duration", style="bold"),
            Column("where", "Line", "path", style="cyan"),
            Column("code", "Code", flexible=True, priority=1),
            Column("calls", "Calls", "number", priority=1),
            *rates,
            Column("lost_ns", "Above least", "duration"),
        ),
        "step": (
            Column("rank", "Rank", "number"),
            Column("device", "Device"),
            Column("step", "Step", "number"),
            Column("wall_ns", "Time", "duration", style="bold"),
            Column("dtype", "Type"),
            Column("achieved_flops", "Computes", "flop_rate"),
            Column("mfu", "MFU", "share"),
        ),
    }
    return read(
        run,
        lambda opened: opened.roofline(by),
        columns.get(by, columns["op"]),
        json=json,
        limit=limit,
        shown=lambda row: {**row, "where": place(row) or ""},
        empty="No op carries shapes that a model knows; record with --shapes all (record_shapes=True in a program).",
        note=_left_out,
    )


def _left_out(run: Run) -> str:
    """Which steps have no shapes, and why there is no efficiency where the peaks of no device are known."""
    from explorer.analysis.device_peaks import any_known
    from explorer.analysis.shape_coverage import without_shapes

    said = [without_shapes(run.engine)]
    if not any_known(run.engine):
        said.append(
            "No efficiency: the peaks of no device of the run are known. Of this machine's CPU --measure-cpu finds them, when "
            "nothing else runs."
        )
    return "\n".join(text for text in said if text)
