"""`import`: turn traces into a run."""

from __future__ import annotations

import os
import shlex
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from explorer.cli.options import JsonOption
from explorer.cli.run_name import name_of_source

if TYPE_CHECKING:
    from explorer.collectors.options import ImportOptions

SCHEMA = "neuron-explorer/import/1"
LEAST_MEMORY_MIB = 384
"""The interpreter with pyarrow and duckdb takes a third of it, a stretch of text and a part of the tables in work the rest."""


def command(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="SRC...", help="Trace files, directories of ranks, or globs", show_default=False
        ),
    ],
    output: Annotated[
        str | None,
        typer.Option("-o", "--output", metavar="RUN", help="Run directory [default: runs/SRC]"),
    ] = None,
    rank: Annotated[
        int | None, typer.Option("--rank", min=0, help="Rank of the one trace given", show_default=False)
    ] = None,
    processes: Annotated[
        int | None, typer.Option("--processes", min=1, help="Worker processes [default: by CPU count]")
    ] = None,
    memory: Annotated[
        int,
        typer.Option(
            "--memory-mib",
            min=LEAST_MEMORY_MIB,
            help="Memory that an import of Kineto and Chrome JSON takes at most, all processes together, in MiB",
        ),
    ] = 1024,
    max_bytes: Annotated[
        int, typer.Option("--max-bytes", min=1, help="Refuse inputs that hold more bytes than this")
    ] = 64 << 30,
    max_ratio: Annotated[
        int, typer.Option("--max-ratio", min=1, help="Refuse archives that expand more than this many times")
    ] = 400,
    scheduler: Annotated[
        str | None,
        typer.Option(
            "--scheduler",
            metavar="ADDRESS",
            help="Dask scheduler: one task per rank on its workers",
            show_default=False,
        ),
    ] = None,
    add: Annotated[bool, typer.Option("--add", help="Add ranks to RUN, which is there already")] = False,
    cache_dir: Annotated[
        str | None,
        typer.Option(
            "--cache-dir",
            metavar="DIR",
            help="Keep the run in this cache, and take it from there while SRC is unchanged; -o makes a copy",
            show_default=False,
        ),
    ] = None,
    json: JsonOption = False,
) -> int:
    """Turn traces into a run: Kineto and Chrome JSON (also .gz, .zst, .zip), Nsight Systems SQLite, XPlane, PyTorch memory
    snapshots, rocprofv3 JSON, Ascend databases.

    A directory or glob of ranks becomes one run with one partition per rank. The format is recognised by content. Sources and
    RUN may be URLs (s3://...); with --scheduler, or paths that every worker sees. Ends
    with 4 where part of the input was lost or repaired; `neuron-explorer health RUN` says what.
    """
    from explorer.store.arrow_alone import keep_pandas_out

    keep_pandas_out()
    from explorer.cli.add_hint import add_hint
    from explorer.cli.output import note, print_json
    from explorer.cli.progress import import_progress
    from explorer.cli.rank_rollups import roll_up_quietly
    from explorer.collectors.import_trace import import_trace
    from explorer.collectors.options import ImportOptions
    from explorer.collectors.source import Limits

    _refuse_runs(sources)
    options = ImportOptions(
        rank=rank,
        limits=Limits(max_ratio, max_bytes),
        processes=processes,
        memory_bytes=memory << 20,
        add=add,
    )
    if cache_dir is not None:
        return _from_cache(
            sources,
            output,
            cache_dir,
            options,
            changed=rank is not None or add or scheduler is not None,
            json=json,
        )
    target = output or default_output(sources[0])
    if scheduler is not None:
        from explorer.collectors.cluster_import import import_on_cluster

        report = import_on_cluster(sources, target, scheduler, options=options)
    else:
        with import_progress() as progress:
            report = import_trace(sources, target, options=options, progress=progress)
    roll_up_quietly(
        report.directory, processes=processes, scheduler=scheduler, memory_bytes=options.memory_bytes
    )
    if json:
        print_json({"schema": SCHEMA, **asdict(report), "exit_code": report.exit_code})
        return report.exit_code
    rate = report.rows / report.seconds if report.seconds else 0.0
    ranks = f"{len(report.ranks)} ranks" if len(report.ranks) > 1 else f"rank {report.ranks[0]}"
    note(
        f"{report.rows:,} rows, {report.events:,} events, {ranks}, {', '.join(report.formats)}, "
        f"{report.seconds:.1f} s ({rate:,.0f} rows/s)"
    )
    for path, reason in report.skipped:
        note(f"Not read: {reason if reason.startswith(path) else f'{path}: {reason}'}")
    if report.lost or report.repaired:
        note(
            f"Part of the input was lost or repaired ({report.lost} losses, {report.repaired} repairs); "
            f"details: neuron-explorer health {report.directory}"
        )
    if hint := add_hint(target, report.directory, report.ranks):
        note(hint)
    note(f"run: {_short(report.directory)}")
    return report.exit_code


def _refuse_runs(sources: list[str]) -> None:
    """Raise for a source that is no trace: an empty word, or a run."""
    from explorer.model.errors import InputError, UsageError
    from explorer.store.reader import is_run

    for source in sources:
        if not source:
            raise UsageError("The path of the trace is empty.", "Give a trace file or a directory of them.")
        if "://" not in source and os.path.isdir(source) and is_run(source):
            raise InputError(
                f"{source} is a run already.", f"Read it: neuron-explorer bottlenecks {shlex.quote(source)}"
            )


def _from_cache(
    sources: list[str],
    output: str | None,
    cache_dir: str,
    options: ImportOptions,
    *,
    changed: bool,
    json: bool,
) -> int:
    """The run of one source by way of a cache: instant where the source is unchanged."""
    from explorer.cli.output import note, print_json
    from explorer.cli.rank_rollups import roll_up_quietly
    from explorer.cli.source_run import run_directory
    from explorer.collectors.run_copy import copy_run
    from explorer.model.errors import UsageError

    if len(sources) != 1 or changed:
        raise UsageError(
            "--cache-dir takes one SRC, without --rank, --add and --scheduler.", "Leave one of them out."
        )
    directory, code = run_directory(sources[0], cache_dir, options)
    roll_up_quietly(directory, processes=options.processes, memory_bytes=options.memory_bytes)
    if output is not None:
        directory = copy_run(directory, output)
    if json:
        print_json({"schema": SCHEMA, "directory": directory, "exit_code": code})
    else:
        note(f"run: {_short(directory)}")
    return code


def default_output(source: str) -> str:
    """runs/<name of the source without its endings>"""
    return os.path.join("runs", name_of_source(source, "import"))


def _short(directory: str) -> str:
    if "://" in directory:
        return directory
    relative = os.path.relpath(directory)
    return directory if relative.startswith("..") else relative
