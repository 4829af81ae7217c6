"""`lines`: what each source line costs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from explorer.cli.options import JsonOption, LimitOption, RankOption, RunArgument

if TYPE_CHECKING:
    from explorer.analysis.run import Run


def _as_recorded(run: Run) -> str:
    """What the times hold besides the program, where that was measured."""
    if not any(manifest.cost.get("op_ns") for manifest in run.engine.reader.manifests.values()):
        return ""
    return "Times are as recorded; findings leave out what recording cost (corrected_cost_ns in --json)."


def command(
    run: RunArgument,
    everything: Annotated[
        bool, typer.Option("--all", help="Also lines outside your own code (torch, libraries)")
    ] = False,
    by: Annotated[
        str, typer.Option("--by", help="line, or site: comprehensions and lambdas apart from their line")
    ] = "line",
    limit: LimitOption = 20,
    rank: RankOption = None,
    json: JsonOption = False,
) -> int:
    """What each source line costs, costliest first.

    Device is the time of the kernels and copies the line started. Host is its Python time and the host time of the ops
    it is responsible for: an op of the backward pass belongs to the line of its forward op. Own is the time threads spent
    executing the line itself. The shares are parts of all device time and of all host time. A line and the
    comprehensions and lambdas on it are one row; --by site tells them apart.
    """
    from explorer.analysis.phrase import place
    from explorer.cli.reading import named, read
    from explorer.cli.table import Column

    columns = (
        Column("device_share", "Device %", "share", priority=1, style="bold"),
        Column("device_ns", "Device", "duration", priority=1),
        Column("share", "Host %", "share", style="bold"),
        Column("cost_ns", "Host", "duration"),
        Column("host_ns", "Own", "duration", priority=2),
        Column("python_ns", "Python", "duration", priority=3),
        Column("charged_ns", "Charged", "duration", priority=4),
        Column("ops", "Ops", "number", priority=5),
        Column("calls", "Visits", "number", priority=6),
        Column("where", "Line", "path", flexible=True, style="cyan"),
        *((Column("function", "Function", style="dim", flexible=True),) if by == "site" else ()),
        Column("code", "Code", flexible=True),
    )
    return read(
        run,
        lambda opened: opened.lines(by),
        columns,
        json=json,
        limit=limit,
        rank=rank,
        only="" if everything else "is_user",
        shown=lambda row: {
            **row,
            "where": place(row),
            "code": row["code"] or named(row["function"]),
        },
        empty="No source lines were recorded; --all also shows lines of libraries.",
        note=_as_recorded,
    )
