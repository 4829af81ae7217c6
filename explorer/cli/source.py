"""`source`: a source file as it ran, with what each line cost beside it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from explorer.cli.options import JsonOption, LimitOption, RankOption, RunArgument
from explorer.model.errors import UsageError

if TYPE_CHECKING:
    from explorer.analysis.source_view import CodeFile

LISTING_SCHEMA = "neuron-explorer/source/1"
FILES_SCHEMA = "neuron-explorer/source-files/1"

CONTEXT = 3
"""Lines that are shown around a line worth showing."""
AROUND = 10
"""Lines that are shown around the line of FILE:LINE."""
WORTH_SHOWING = 0.001
"""Share from which a line is shown without --whole."""


def command(
    run: RunArgument,
    file: Annotated[
        str | None,
        typer.Argument(
            metavar="[FILE]",
            help="A file, or the end of its path; FILE:LINE shows what is around a line",
            show_default=False,
        ),
    ] = None,
    whole: Annotated[
        bool, typer.Option("--whole", help="The whole file, not only around costly lines")
    ] = False,
    limit: LimitOption = 20,
    rank: RankOption = None,
    json: JsonOption = False,
) -> int:
    """A source file as it ran, with what each line cost beside it. Without FILE: the files of the run, costliest first.

    Device and Host are the time of the work the line is responsible for, as in `lines`.
    """
    from explorer.analysis.source_view import code_file, files_of, line_rows
    from explorer.cli.output import cut, note_cut, print_json
    from explorer.cli.source_run import open_source
    from explorer.cli.table import Column, print_table

    source = open_source(run, rank=rank)
    with source.run as opened:
        rows = line_rows(opened)
        files = files_of(rows)
        if file is not None:
            name, around = _file_and_line([entry["file"] for entry in files], file)
            found = code_file(opened, rows, name)
            if json:
                print_json({**_document(found), "run": opened.directory})
            else:
                _print(found, _visible(found, whole, around))
            return source.exit_code
        first = cut(files, limit)
        if json:
            print_json(
                {
                    "schema": FILES_SCHEMA,
                    "run": opened.directory,
                    "rows": first,
                    "total_rows": len(files),
                    "truncated": len(first) < len(files),
                }
            )
        elif not files:
            print("No source lines were recorded.")
        else:
            columns = (
                Column("device_share", "Device %", "share", priority=1, style="bold"),
                Column("device_ns", "Device", "duration", priority=1),
                Column("share", "Host %", "share", style="bold"),
                Column("cost_ns", "Host", "duration"),
                Column("line_count", "Lines", "number", priority=3),
                Column("file", "File", "path", flexible=True, style="cyan"),
            )
            print_table(first, columns)
            note_cut(len(first), len(files))
    return source.exit_code


def _file_and_line(names: Sequence[str], given: str) -> tuple[str, int | None]:
    """The file of the run, and the line of `FILE:LINE`, as tables write places."""
    file, colon, number = given.rpartition(":")
    if colon and number.isdecimal() and len(number) < 10:
        return _full_name(names, file), int(number)
    return _full_name(names, given), None


def _full_name(names: Sequence[str], given: str) -> str:
    """The file of the run that a path from the shell means: longer (./train.py) or shorter (train.py) than the run's own."""
    wanted = os.path.normpath(given).replace(os.sep, "/")
    if wanted in names:
        return wanted
    ends = [name for name in names if f"/{name}".endswith(f"/{wanted}") or f"/{wanted}".endswith(f"/{name}")]
    if len(ends) == 1:
        return ends[0]
    if ends:
        raise UsageError(f"Several files end in {given}: {', '.join(ends[:5])}.", "Give more of the path.")
    held = f"It has: {', '.join(names[:5])}." if names else "It has no source lines at all."
    raise UsageError(f"The run has no lines of a file {given or '(empty)'}.", held)


def _document(found: CodeFile) -> dict[str, Any]:
    """The document of `source RUN FILE --json`."""
    place = ("site_id", "file", "line", "function", "code", "is_user")
    lines = [
        {
            "line": line.number,
            "code": line.text,
            "function": line.function,
            "costs": {key: value for key, value in line.costs.items() if key not in place}
            if line.costs
            else None,
        }
        for line in found.lines
    ]
    return {"schema": LISTING_SCHEMA, "file": found.file, "complete": found.complete, "lines": lines}


def _print(found: CodeFile, indexes: list[int]) -> None:
    from rich.syntax import Syntax
    from rich.text import Text

    from explorer.cli import units
    from explorer.cli.table import console

    out = console()
    on_device = any(line.costs and line.costs["device_ns"] for line in found.lines)
    out.print(Text(found.file, style="bold"))
    if not found.complete:
        out.print(
            Text("The run does not hold this file's text: only lines with a cost are shown.", style="yellow")
        )
    code = "\n".join(units.one_line(line.text.expandtabs(4), strip=False) for line in found.lines)
    highlighted = Syntax("", "python", theme="ansi_dark").highlight(code).split("\n", allow_blank=True)
    device_title = f"{'Device %':>8}  {'Device':>8}  " if on_device else ""
    # On a narrow terminal the code needs the room more.
    with_ops = out.width >= 100
    ops_title = f"  {'Ops':>7}" if with_ops else ""
    heading = f"{device_title}{'Host %':>7}  {'Host':>8}{ops_title}  {'Line':>5}"
    out.print(Text(heading, style="bold"))
    last = 0
    for index in indexes:
        line = found.lines[index]
        if last and line.number != last + 1:
            out.print(Text(f"{'…':>{len(heading)}}", style="dim"))
        last = line.number
        text = Text.assemble(
            *_costs(line.costs, on_device, with_ops),
            (f"  {line.number:>5}  ", "dim"),
            highlighted[index].copy(),
        )
        text.rstrip()
        out.print(text, no_wrap=True, overflow="ellipsis")


def _costs(costs: dict[str, Any] | None, on_device: bool, with_ops: bool) -> list[tuple[str, str]]:
    from explorer.cli import units

    costs = costs or {}
    parts = []
    for share, time, width in (("device_share", "device_ns", 8), ("share", "cost_ns", 7)):
        if share == "device_share" and not on_device:
            continue
        part = costs.get(share) or 0.0
        style = "bold red" if part >= 0.10 else "yellow" if part >= 0.03 else ""
        parts.append((f"{units.share(part) if part >= 0.0005 else '':>{width}}", style))
        parts.append((f"  {units.duration(costs[time]) if costs.get(time) else '':>8}", ""))
        parts.append(("" if share == "share" else "  ", ""))
    if with_ops:
        parts.append((f"  {units.number(costs['ops']) if costs.get('ops') else '':>7}", ""))
    return parts


def _visible(found: CodeFile, whole: bool, around: int | None = None) -> list[int]:
    """Indexes of the lines to show: all of them, those around one, or those that cost something and a few around each.
    Raises UsageError for a line that the file does not have."""
    if around is not None and not whole:
        near = [index for index, line in enumerate(found.lines) if abs(line.number - around) <= AROUND]
        if not any(found.lines[index].number == around for index in near) and found.complete:
            raise UsageError(f"{found.file} has no line {around}.", f"It has {len(found.lines)}.")
        return near
    if whole or not found.complete:
        return list(range(len(found.lines)))
    shown: set[int] = set()
    for index, line in enumerate(found.lines):
        if line.costs and max(line.costs["share"] or 0, line.costs["device_share"] or 0) >= WORTH_SHOWING:
            shown.update(range(max(0, index - CONTEXT), min(len(found.lines), index + CONTEXT + 1)))
    return sorted(shown) or list(range(len(found.lines)))
