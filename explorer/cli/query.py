"""`query`: SQL over a run, read-only and bounded."""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from explorer.cli.options import JsonOption, RankOption, RunArgument
from explorer.model.errors import UsageError

if TYPE_CHECKING:
    from explorer.analysis.result import Result


class Format(StrEnum):
    """How rows are written."""

    table = "table"
    csv = "csv"
    json = "json"


def command(
    run: RunArgument,
    sql: Annotated[
        str,
        typer.Argument(metavar="SQL", help="One SELECT; - reads it from standard input", show_default=False),
    ],
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="Most rows")] = 10_000,
    timeout: Annotated[float, typer.Option("--timeout", min=0.1, help="Longest time in seconds")] = 30.0,
    rank: RankOption = None,
    form: Annotated[Format, typer.Option("--format", help="How rows are written")] = Format.table,
    json: JsonOption = False,
) -> int:
    """Answer one read-only SQL statement over the tables and views that `neuron-explorer schema` lists.

    Values are printed as they are: times in nanoseconds. The statement can read nothing but this run and write nothing.
    """
    from explorer.cli.output import note, print_json, rows_document
    from explorer.cli.source_run import open_source

    text = sys.stdin.read() if sql == "-" else sql
    if not text.strip():
        raise UsageError(
            "The SQL text is empty.", 'Try: neuron-explorer query RUN "SELECT * FROM ops LIMIT 5"'
        )
    source = open_source(run, rank=rank)
    with source.run as opened:
        result = opened.sql(text, timeout_s=timeout, max_rows=limit)
        if json or form is Format.json:
            print_json(rows_document(result, opened.directory, result.rows(), len(result)))
        elif form is Format.csv:
            _write_csv(result)
        else:
            _print(result)
    if result.truncated:
        note(f"Cut at {len(result):,} rows; --limit gives more.")
    return source.exit_code


def _print(result: Result) -> None:
    from explorer.cli.table import Column, print_table

    # A column may be named as anything: address them by position.
    names = result.columns
    numeric = {i for i, field in enumerate(result.table.schema) if _is_number(str(field.type))}
    columns = [
        Column(str(i), name, "raw" if i in numeric else "text", priority=min(i, 3), flexible=i not in numeric)
        for i, name in enumerate(names)
    ]
    values = [column.to_pylist() for column in result.table.columns]
    print_table(
        ({str(i): value for i, value in enumerate(row)} for row in zip(*values)), columns, keep_empty=True
    )


def _is_number(kind: str) -> bool:
    return kind.startswith(("int", "uint", "float", "double", "decimal", "halffloat"))


def _write_csv(result: Result) -> None:
    import csv
    import io

    from explorer.cli.units import harmless

    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(result.columns)
    writer.writerows(zip(*(column.to_pylist() for column in result.table.columns)))
    # A file or another program gets the values as they are.
    sys.stdout.write(harmless(text.getvalue()) if sys.stdout.isatty() else text.getvalue())
