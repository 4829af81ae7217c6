"""`ranks`: which rank holds the job up, since when, why, and what the job would gain."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from explorer.cli.options import JsonOption, LimitOption, RunArgument

if TYPE_CHECKING:
    from explorer.analysis.ranks.job_report import JobReport


def command(
    run: RunArgument,
    limit: LimitOption = 16,
    scheduler: Annotated[
        str | None,
        typer.Option(
            "--scheduler",
            metavar="ADDRESS",
            help="Dask scheduler whose workers make missing roll-ups",
            show_default=False,
        ),
    ] = None,
    json: JsonOption = False,
) -> int:
    """Which rank holds the job up, since when, why, and what the job would gain.

    Communication is matched across ranks, clocks are aligned by the ends of calls that all ranks end together, and each
    rank's step is split into its own work, waiting for others, and transfer. Nothing finer than the clocks' residual is
    said.
    """
    from explorer.analysis.ranks.job_report import job_report
    from explorer.cli.output import print_json
    from explorer.cli.rank_rollups import roll_up_quietly
    from explorer.cli.source_run import open_source, run_directory

    if scheduler is not None:
        roll_up_quietly(run_directory(run)[0], scheduler=scheduler)
    opened = open_source(run)
    report = job_report(opened.run)
    if json:
        print_json(report.to_dict())
    else:
        _print(report, limit)
    return opened.exit_code


def _print(report: JobReport, limit: int) -> None:
    from explorer.analysis.ranks.device_mesh import mesh_text
    from explorer.cli.output import note_cut
    from explorer.cli.table import Column, print_hanging, print_table, say
    from explorer.cli.units import duration

    matched = sum(row["matched"] for row in report.clocks[1:])
    if report.absent_text:
        say(f"{report.absent_text}.")
    for one in report.desync:
        text = one.text()
        say(text[0].upper() + text[1:])
    if report.desync:
        # A job that hangs is not told which rank is slow.
        pass
    elif len(report.ranks) < 2:
        say("One rank: nothing to compare.")
    elif not matched:
        say("No communication call was recorded by more than one rank: waits and clocks are unknown.")
    elif not report.stragglers:
        say("No rank holds the others up by 1 % of a step or more.")
    for item in report.stragglers:
        since = f" since step {item.first_step}" if item.first_step is not None else ""
        say(
            f"Rank {item.rank} holds the others up by {duration(item.delay_ns)} per step ({item.share:.1%}): last in"
            f" {item.steps_last} of {item.steps} steps{since}, {item.pattern}."
        )
        for cause in item.causes[:2]:
            place = f"{cause.file}:{cause.line}  {cause.code or ''}" if cause.file else "(no line known)"
            print_hanging(f"    {duration(cause.more_ns)} more {cause.kind}  ", place)
    gains = [gain for gain in report.gains if gain.saving_ns > 0][:4]
    if gains:
        print()
        say(
            f"The job's step, {duration(gains[0].before_ns)} from the first rank's start to the last rank's end, would take"
        )
        for gain in gains:
            say(f"    {duration(gain.after_ns)} ({-gain.saving_ns / gain.before_ns:+.1%}) with {gain.change}")
    print()
    columns = [
        Column("rank", "rank", "number"),
        Column("host", "host", "text", 4, flexible=True),
        Column("step_ns", "step", "duration"),
        Column("own_ns", "own", "duration"),
        Column("wait_ns", "waits", "duration"),
        Column("transfer_ns", "transfer", "duration", 1),
        Column("compute_ns", "compute", "duration", 2),
        Column("data_ns", "data", "duration", 3),
        Column("python_ns", "python", "duration", 3),
        Column("last_calls", "last at", "number", 1),
        Column("calls", "of", "number", 1),
    ]
    shown = report.ranks[:limit] if limit else report.ranks
    print_table(shown, columns)
    note_cut(len(shown), len(report.ranks))
    if matched and report.bandwidth:
        print()
        rows = [
            {
                **row,
                "group": row["group_name"] or "(unnamed)",
            }
            for row in report.bandwidth[:8]
        ]
        print_table(
            rows,
            [
                Column("group", "group", "text", 2),
                Column("operation", "operation"),
                Column("group_size", "ranks", "number", 2),
                Column("size_bytes", "size", "bytes"),
                Column("calls", "calls", "number", 1),
                Column("latency_ns", "transfer", "duration"),
                Column("wait_ns", "waits", "duration"),
                Column("bus_bandwidth", "on the bus", "byte_rate", 1),
            ],
        )
    if mesh := mesh_text(report.mesh):
        print()
        say(f"Mesh: {mesh}.")
    for pipeline in report.pipelines:
        chunks = f", {pipeline.chunks} stages per rank" if pipeline.chunks > 1 else ""
        say(
            f"Pipeline over ranks {', '.join(map(str, pipeline.ranks))}: {pipeline.schedule}, {pipeline.microbatches} microbatches{chunks};"
            f" it leaves at least {pipeline.least_bubble:.0%} of a step idle."
        )
    residuals = [row["residual_ns"] for row in report.clocks if row["residual_ns"] is not None]
    if matched and residuals:
        print()
        say(f"Clocks aligned by {matched:,} matched ends; uncertain by {duration(round(max(residuals)))}.")
    if report.missing:
        first = report.missing[0]
        say(
            f"{len(report.missing)} calls were not recorded by all ranks of their group, the first: {first['operation']} of group"
            f" {first['group_name']} by ranks {first['ranks']} of {first['group_size']}."
        )
