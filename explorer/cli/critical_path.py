"""`critical-path`: the chain of work that the step time is made of."""

from __future__ import annotations

from typing import Annotated

import typer

from explorer.cli.options import JsonOption, LimitOption, RankOption, RunArgument, StepOption
from explorer.model.errors import UsageError

SCHEMA = "neuron-explorer/critical-path/1"


def command(
    run: RunArgument,
    json: JsonOption = False,
    limit: LimitOption = 15,
    rank: RankOption = None,
    step: StepOption = None,
    pieces: Annotated[bool, typer.Option("--pieces", help="List the path piece by piece")] = False,
    slack: Annotated[
        bool, typer.Option("--slack", help="List work by how late it could be without making a step longer")
    ] = False,
) -> int:
    """The chain of work that the step time is made of: by kind, by source line, or piece by piece.

    Only work on this path can make a step shorter. It goes back from the end of the last step, at each point to what was
    waited for last: the thread itself, a device event, its launch, another stream. Its pieces add up to the wall time.
    Work beside the path has slack: it could end that much later, and making it faster gains nothing.
    """
    from explorer.analysis.phrase import place
    from explorer.analysis.trace_rows import step_window
    from explorer.cli.output import chosen, cut, note_cut, print_json
    from explorer.cli.reading import named
    from explorer.cli.source_run import open_source
    from explorer.cli.table import Column, print_table

    if step is not None and not pieces:
        raise UsageError("--step is for --pieces: the sums are over all complete steps.")
    opened = open_source(run)
    if rank is not None:
        opened.run.reader.of_ranks([rank])
    if step is not None:
        step_window(opened.run, step)
    directory, view = opened.run.directory, opened.run.view
    if pieces:
        rows = chosen(view("critical_path").rows(), rank=rank, step=step)
        shown = cut(rows, limit)
        if json:
            print_json({"schema": SCHEMA, "run": directory, "pieces": shown, "total_rows": len(rows)})
            return opened.exit_code
        columns = [
            Column("rank", "rank", "number", 3),
            Column("step", "step", "number", 1),
            Column("start_ns", "start ns", "text", 2),
            Column("duration_ns", "time", "duration"),
            Column("kind", "kind"),
            Column("event_id", "event", "text", 1),
            Column("site_id", "site", "text", 2),
        ]
        print_table(shown, columns)
        note_cut(len(shown), len(rows))
        return opened.exit_code
    if slack:
        rows = chosen(view("slack_names").rows(), rank=rank)
        shown = cut(rows, limit)
        if json:
            print_json({"schema": SCHEMA, "run": directory, "slack": shown, "total_rows": len(rows)})
            return opened.exit_code
        print_table(
            [{**row, "where": place(row)} for row in shown],
            [
                Column("rank", "rank", "number", 3),
                Column("total_ns", "time", "duration"),
                Column("calls", "calls", "number"),
                Column("critical_calls", "on the path", "number"),
                Column("least_slack_ns", "least slack", "duration"),
                Column("median_slack_ns", "median", "duration", 2),
                Column("unawaited_calls", "not awaited", "number", 2),
                Column("name", "work", flexible=True),
                Column("where", "line", "path", 1, flexible=True),
            ],
        )
        note_cut(len(shown), len(rows))
        return opened.exit_code
    kinds = chosen(view("critical_path_kinds").rows(), rank=rank)
    lines = chosen(view("critical_path_lines").rows(), rank=rank)
    shown = cut(lines, limit)
    if json:
        print_json(
            {"schema": SCHEMA, "run": directory, "kinds": kinds, "lines": shown, "total_rows": len(lines)}
        )
        return opened.exit_code
    several = Column("rank", "rank", "number", 3)
    only_one = len({row["rank"] for row in kinds}) < 2
    rank_column = [] if only_one else [several]
    print_table(
        kinds,
        [
            *rank_column,
            Column("kind", "on the path"),
            Column("per_step_ns", "per step", "duration"),
            Column("share", "share", "share"),
            Column("pieces", "pieces", "number", 2),
        ],
    )
    print()
    print_table(
        [{**row, "where": place(row), "code": row["code"] or named(row["function"])} for row in shown],
        [
            *rank_column,
            Column("share", "share", "share"),
            Column("per_step_ns", "per step", "duration"),
            Column("host_ns", "host", "duration", 3),
            Column("device_ns", "device", "duration", 3),
            Column("where", "line", "path", flexible=True),
            Column("code", "code", flexible=True),
        ],
    )
    note_cut(len(shown), len(lines))
    return opened.exit_code
