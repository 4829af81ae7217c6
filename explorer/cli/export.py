"""`export`: a run, or a part of it, as a file that other tools open."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated

import typer

from explorer.cli.options import OUTPUT, RankOption, RunArgument, StepOption
from explorer.model.errors import UsageError

if TYPE_CHECKING:
    from explorer.analysis.run import Run
    from explorer.analysis.trace_rows import Window

ENDINGS = {
    "speedscope": (".speedscope.json", ".speedscope.json.gz", ".speedscope"),
    "perfetto": (".json", ".json.gz", ".perfetto"),
    "folded": (".folded", ".collapsed", ".stacks"),
    "csv": (".csv",),
    "parquet": (".parquet", ".pq"),
    "openmetrics": (".prom", ".om", ".openmetrics", ".metrics"),
}
"""File endings of each format; the first format that fits counts, in capitals too."""
FORMATS = ("perfetto", "speedscope", "folded", "csv", "parquet", "openmetrics")
WEIGHTS = ("host", "device")
_LONGEST_MS = 1e12
"""About thirty years"""


def command(
    run: RunArgument,
    output: Annotated[str, OUTPUT],
    format_: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help=f"{', '.join(FORMATS)}; default: by the file's ending",
            show_default=False,
        ),
    ] = None,
    view: Annotated[
        str | None,
        typer.Option("--view", help="For csv and parquet: which table or view", show_default=False),
    ] = None,
    rank: RankOption = None,
    step: StepOption = None,
    start_ms: Annotated[
        float | None,
        typer.Option(
            "--from", metavar="MS", help="For perfetto: from this time of the run on", show_default=False
        ),
    ] = None,
    end_ms: Annotated[
        float | None,
        typer.Option(
            "--to", metavar="MS", help="For perfetto: up to this time of the run", show_default=False
        ),
    ] = None,
    weight: Annotated[
        str, typer.Option("--weight", metavar="host|device", help="For speedscope and folded: whose time")
    ] = "host",
) -> int:
    """A run as a file for other tools.

    perfetto: Chrome JSON of the run or a window, with source lines, arrows and counters (also .json.gz). speedscope, folded: flame
    graphs by user line. csv, parquet: any table or view. openmetrics: the key figures for Prometheus.
    """
    kind = format_ or _by_ending(output)
    if output == "-":
        output = "/dev/stdout"
    if kind not in FORMATS:
        raise UsageError(f"There is no format '{format_}'.", f"Choose one of {', '.join(FORMATS)}.")
    _check(kind, view, weight, step, start_ms, end_ms)
    from explorer.cli.output import note, refuse_unwritable
    from explorer.cli.source_run import open_source

    source = open_source(run, rank=rank)
    refuse_unwritable(output, "Choose another file with -o.")
    with source.run as opened:
        try:
            said = _write(opened, output, kind, view or "", weight, step, start_ms, end_ms)
        except OSError as error:
            raise UsageError(
                f"Cannot write {output}: {error.strerror or error}.", "Choose another file with -o."
            ) from error
    size = f", {os.path.getsize(output):,} bytes" if os.path.isfile(output) else ""
    note(f"{output}: {said}{size}")
    return source.exit_code


def _by_ending(output: str) -> str:
    name = output.lower()
    for kind, endings in ENDINGS.items():
        if name.endswith(endings):
            return kind
    if name.endswith((".html", ".md")):
        raise UsageError(
            f"The ending of {output} names no format of export.", "The verb report writes HTML and Markdown."
        )
    known = "; ".join(f"{kind} {', '.join(ENDINGS[kind])}" for kind in FORMATS)
    raise UsageError(
        f"The ending of {output} names no format.", f"Known are: {known}. Or choose one with --format."
    )


def _check(
    kind: str, view: str | None, weight: str, step: int | None, start_ms: float | None, end_ms: float | None
) -> None:
    if kind in ("csv", "parquet") and not view:
        raise UsageError(
            f"{kind} needs the name of a table or view.", "Give it with --view, as in --view lines."
        )
    if view and kind not in ("csv", "parquet"):
        raise UsageError("--view is for csv and parquet.")
    if weight not in WEIGHTS:
        raise UsageError(f"There is no weight '{weight}'.", "Choose host or device.")
    if weight != "host" and kind not in ("speedscope", "folded"):
        raise UsageError("--weight is for speedscope and folded.")
    if kind != "perfetto" and any(value is not None for value in (step, start_ms, end_ms)):
        raise UsageError("A window (--step, --from, --to) is for perfetto.")
    if step is not None and (start_ms is not None or end_ms is not None):
        raise UsageError("Give either --step or --from and --to.")
    for name, value in (("--from", start_ms), ("--to", end_ms)):
        if value is not None and not abs(value) <= _LONGEST_MS:
            raise UsageError(
                f"{name} {value:g} is no time of a recording.", "Give milliseconds from its begin."
            )
    if start_ms is not None and end_ms is not None and end_ms <= start_ms:
        raise UsageError("--to must be later than --from.")


def _write(
    run: Run,
    output: str,
    kind: str,
    view: str,
    weight: str,
    step: int | None,
    start_ms: float | None,
    end_ms: float | None,
) -> str:
    if kind == "perfetto":
        from explorer.report.perfetto import write_perfetto

        written = write_perfetto(run, output, _window(run, step, start_ms, end_ms))
        moved = f" ({written.moved:,} on further lanes: they overlap)" if written.moved else ""
        return (
            f"{written.events:,} events{moved}, {written.lines:,} stretches of source lines, {written.arrows:,} arrows, "
            f"{written.counters:,} counter values"
        )
    if kind in ("csv", "parquet"):
        from explorer.report.table_file import write_table

        return f"{write_table(run, view, output, kind):,} rows of {view}"
    from explorer.report.whole_file import write_whole

    if kind == "openmetrics":
        from explorer.report.openmetrics import openmetrics_text

        text = openmetrics_text(run)
        write_whole(output, text.encode())
        return f"{sum(not line.startswith('#') for line in text.splitlines()):,} values"
    import gzip

    from explorer.report.speedscope import folded_lines, speedscope_json

    if kind == "speedscope":
        data = speedscope_json(run, device=weight == "device")
        write_whole(output, gzip.compress(data) if output.lower().endswith(".gz") else data)
        return f"{weight} time by user line"
    lines = list(folded_lines(run, device=weight == "device"))
    write_whole(output, "".join(f"{line}\n" for line in lines).encode("utf-8", "replace"))
    return f"{len(lines):,} call chains by {weight} time"


def _window(run: Run, step: int | None, start_ms: float | None, end_ms: float | None) -> Window:
    from explorer.analysis.trace_rows import Window, begin_ns, step_window

    if step is not None:
        return step_window(run, step)
    if start_ms is None and end_ms is None:
        return Window()
    begin = begin_ns(run)
    return Window(
        None if start_ms is None else begin + round(start_ms * 1e6),
        None if end_ms is None else begin + round(end_ms * 1e6),
    )
