"""From the path a user gives to an open run: a run opens as it is, a trace is imported to a cache first."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from explorer.cli.output import note
from explorer.model.errors import EXIT_DONE, EXIT_PARTIAL, InputError

if TYPE_CHECKING:
    from explorer.analysis.run import Run
    from explorer.collectors.options import ImportOptions
    from explorer.store.reader import RunReader


MOST_NAMED = 8


class Source(NamedTuple):
    """An open run, and the exit code that a reading verb ends with: 4 where importing it lost or repaired something."""

    run: Run
    exit_code: int


def run_directory(
    path: str, cache_dir: str | None = None, options: ImportOptions | None = None
) -> tuple[str, int]:
    """The run's directory for a run or a trace, and the exit code reading it ends with.

    A trace is imported to the user's cache, or to that in `cache_dir`, as `options` say. Raises InputError where the path is neither.
    """
    from explorer.store.reader import is_run

    if is_run(path):
        return path, EXIT_DONE
    if "://" not in path and not os.path.exists(path) and not _is_pattern(path):
        raise InputError(f"{path} does not exist.", "Give a run directory or a trace file.")
    from explorer.cli.progress import import_progress
    from explorer.collectors.import_trace import cached_run
    from explorer.collectors.options import DEFAULTS

    try:
        with import_progress() as progress:
            directory = cached_run(path, cache_dir=cache_dir, progress=progress, options=options or DEFAULTS)
    except InputError as error:
        if runs := _runs_in(path):
            more = " ..." if len(runs) > MOST_NAMED else ""
            raise InputError(
                f"{path} is a folder of runs and no run itself.",
                f"Name one of them: {', '.join(runs[:MOST_NAMED])}{more}",
            ) from error
        raise
    return directory, _code(directory)


def _runs_in(path: str) -> list[str]:
    """Runs that lie in a local folder, by name."""
    from explorer.store.reader import is_run

    if "://" in path or not os.path.isdir(path):
        return []
    inside = sorted(os.path.join(path, name) for name in os.listdir(path))
    return [entry for entry in inside if os.path.isdir(entry) and is_run(entry)]


def _is_pattern(path: str) -> bool:
    return any(character in path for character in "*?[")


def open_source(path: str, *, rank: int | None = None) -> Source:
    """Open a run or a trace for reading, or one rank of it.

    Raises InputError where it is neither, UsageError where it has no such rank.
    """
    directory, code = run_directory(path)
    from explorer.store.arrow_alone import keep_pandas_out

    keep_pandas_out()
    from explorer.analysis.run import open_run

    run = open_run(directory, ranks=None if rank is None else [rank])
    return Source(run, max(code, loss_code(run.reader, directory)))


def loss_code(reader: RunReader, directory: str) -> int:
    """The exit code for what a run has lost since it was written; standard error says what. `directory`: its name there."""
    remedy = f"details: neuron-explorer verify {directory}"
    if unreadable := list(reader.unreadable):
        ranks, what = ("rank", "it is") if len(unreadable) == 1 else ("ranks", "they are")
        named = ", ".join(map(str, unreadable[:MOST_NAMED])) + (
            " ..." if len(unreadable) > MOST_NAMED else ""
        )
        note(f"The manifest of {ranks} {named} cannot be read: {what} left out; {remedy}")
    if damaged := reader.damaged:
        rows = sum(part.rows for _, part, _ in damaged)
        files = "1 file" if len(damaged) == 1 else f"{len(damaged)} files"
        note(f"{files} of the run missing or cut: {rows:,} rows are left out; {remedy}")
    return EXIT_PARTIAL if damaged or unreadable else EXIT_DONE


def _code(directory: str) -> int:
    from explorer.store.reader import RunReader

    reader = RunReader(directory)
    lost = repaired = 0
    for rank, manifest in reader.manifests.items():
        quarantined = sum(part.rows for part in reader.parts("quarantine", [rank]))
        lost += max(len(manifest.losses), quarantined)
        repaired += sum(int(repair.get("count", 1)) for repair in manifest.repairs)
    if not lost and not repaired:
        return EXIT_DONE
    note(
        f"Part of the input was lost or repaired ({lost} losses, {repaired} repairs); details: neuron-explorer health {directory}"
    )
    return EXIT_PARTIAL
