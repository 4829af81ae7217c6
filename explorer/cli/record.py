"""`record`: run a program as it is and record it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import uuid
from types import FrameType
from typing import Annotated, Any

import typer

from explorer.cli.run_name import run_name
from explorer.model.errors import ExplorerError, UsageError

CONTEXT_SETTINGS = {"allow_interspersed_args": False, "ignore_unknown_options": False}

_FORWARDED = ("SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGCONT", "SIGWINCH")


def command(
    program: Annotated[
        list[str], typer.Argument(metavar="-- PROGRAM [ARGUMENT]...", help="What to run", show_default=False)
    ],
    output: Annotated[
        str | None,
        typer.Option("-o", "--output", metavar="RUN", help="Run directory [default: runs/PROGRAM-TIME]"),
    ] = None,
    max_events: Annotated[
        int, typer.Option("--max-events", min=1, help="Stop recording after about this many events per rank")
    ] = 1_000_000,
    shapes: Annotated[
        str, typer.Option("--shapes", help="Input shapes: sample (first window), all or none")
    ] = "sample",
    memory: Annotated[bool, typer.Option("--memory", help="Record allocations and frees")] = False,
    lines: Annotated[bool, typer.Option("--lines/--no-lines", help="Record source lines")] = True,
    all_threads: Annotated[
        bool, typer.Option("--all-threads", help="Record ops of every thread, not only the main one")
    ] = False,
    user_code: Annotated[
        list[str] | None,
        typer.Option(
            "--user-code", metavar="GLOB", help="Installed files that are user code: 'transformers/models/*'"
        ),
    ] = None,
    sources: Annotated[
        bool, typer.Option("--sources/--no-sources", help="Store the source text in the run")
    ] = True,
) -> int:
    """Run a PyTorch program and record it: no change to the program is needed, and launchers such as torchrun work.

    Its input, output, signals and exit code pass through untouched. What this tool says goes to standard error; the last
    line is `run: PATH`.
    """
    if shapes not in ("sample", "all", "none"):
        raise UsageError(f"--shapes {shapes} is unknown.", "Choose sample, all or none.")
    words = [*program]
    if words[0] == "--":
        words = words[1:]
    if not words or not words[0]:
        raise UsageError("There is no program to run.", "Try: neuron-explorer record -- python train.py")
    if words[0].endswith(".py"):
        words.insert(0, sys.executable)
    directory = free_directory(output or _default_directory(words))
    options: dict[str, Any] = {
        "directory": directory,
        "max_events": max_events,
        "record_shapes": {"sample": "sample", "all": True, "none": False}[shapes],
        "profile_memory": memory,
        "lines": lines,
        "threads": "all" if all_threads else "main",
        "user_code": user_code or [],
        "sources": sources,
    }
    before = _runs_of_name(directory)
    recording = uuid.uuid4().hex
    code = _run(words, _environment(options, recording))
    written = [run for run in _runs_of_name(directory) if run not in before and _is_of(run, recording)]
    _report(directory, code, written)
    if code < 0:
        _die_of(-code)
    return code


def free_directory(wanted: str) -> str:
    """The wanted directory, or the first sibling that holds no run. Raises UsageError where nothing can be written."""
    from explorer.store.location import Location
    from explorer.store.reader import is_run

    path, number = Location.of(wanted).of_run().root, 2
    while is_run(path):
        path = f"{os.path.abspath(wanted)}-{number}"
        number += 1
    try:
        os.makedirs(path, exist_ok=True)
        if not os.access(path, os.W_OK):
            raise PermissionError(13, "Permission denied")
    except OSError as error:
        raise UsageError(
            f"Cannot write the run to {path}: {error.strerror or error}.", "Choose another directory with -o."
        ) from error
    return path


def _default_directory(words: list[str]) -> str:
    """runs/<script>-<time>"""
    import time

    script = next((word for word in words if word.endswith(".py")), None)
    if script is None and "-m" in words[:-1]:
        script = words[words.index("-m") + 1]
    name = run_name(os.path.splitext(os.path.basename(script or words[0]))[0], "program")
    return os.path.join("runs", f"{name}-{time.strftime('%Y%m%d-%H%M%S')}")


def _environment(options: dict[str, Any], recording: str) -> dict[str, str]:
    import json

    import explorer
    from explorer.collectors.capture.zero_code import HOME, RECORD, RECORDING

    package = os.path.dirname(os.path.abspath(explorer.__file__))
    bootstrap = os.path.join(package, "collectors", "capture", "bootstrap")
    paths = [bootstrap, *filter(None, [os.environ.get("PYTHONPATH")])]
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(paths),
        RECORD: json.dumps(options),
        RECORDING: recording,
        HOME: os.path.dirname(package),
        # Quietens the profiler's own messages; it reads this when its library is loaded.
        "KINETO_LOG_LEVEL": os.environ.get("KINETO_LOG_LEVEL", "6"),
    }


def _run(words: list[str], environment: dict[str, str]) -> int:
    """Run the program with our own standard streams; returns its code, negative for the signal that ended it."""
    child: subprocess.Popen[bytes] | None = None
    early: list[int] = []

    def forward(number: int, frame: FrameType | None) -> None:
        if child is None:
            early.append(number)
        elif number != signal.SIGINT or not _from_terminal():
            child.send_signal(number)

    names = [getattr(signal, name) for name in (*_FORWARDED, "SIGINT") if hasattr(signal, name)]
    # What is ignored here is ignored by the program (nohup, jobs in the background), which a handler here would end.
    heard = [number for number in names if signal.getsignal(number) is not signal.SIG_IGN]
    previous = {number: signal.signal(number, forward) for number in heard}
    try:
        try:
            child = subprocess.Popen(words, env=environment)
        except OSError as error:
            raise UsageError(
                f"Cannot run {words[0]}: {error.strerror or error}.",
                "Check the name and the PATH.",
            ) from error
        for number in early:
            child.send_signal(number)
        return child.wait()
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def _from_terminal() -> bool:
    """Whether Ctrl-C was pressed: then the terminal has sent it to the program already."""
    for stream in (0, 1, 2):
        try:
            return os.tcgetpgrp(stream) == os.getpgrp()
        except OSError:
            continue
    return False


def _report(directory: str, code: int, written: list[str]) -> None:
    """Name the runs that the program's processes wrote, or say why there is none."""
    sys.stdout.flush()
    if written:
        from explorer.cli.output import note
        from explorer.cli.rank_rollups import roll_up_quietly

        roll_up_quietly(written[0])
        for other in written[1:]:
            note(f"neuron-explorer: another process of the program: {_short(other)}")
        note(f"run: {_short(written[0])}")
        return
    if code < 0:
        why = (
            f"signal {-code} ended the program before the first part of the recording was written "
            "(a part is written every 10 s of work)."
        )
    else:
        why = (
            "the main thread of no Python process of the program ran a torch operator (--all-threads records the "
            "others), or it ran with -E, -I or -S, which switch recording off."
        )
    print(f"neuron-explorer: nothing was recorded: {why}", file=sys.stderr, flush=True)
    try:
        os.rmdir(directory)
        os.rmdir(os.path.dirname(directory))
    except OSError:
        # Not empty: not ours to remove.
        pass


def _runs_of_name(directory: str) -> list[str]:
    """The run of that name, and those beside it, NAME-2 and so on: where a second process of one rank records."""
    from explorer.store.reader import is_run

    found = [directory] if is_run(directory) else []
    number = 2
    while is_run(f"{directory}-{number}"):
        found.append(f"{directory}-{number}")
        number += 1
    return found


def _is_of(run: str, recording: str) -> bool:
    """Whether one of the run's ranks is of this call of `record`, not of another that was given the same name meanwhile."""
    from explorer.store.reader import RunReader

    try:
        manifests = RunReader(run).manifests.values()
    except ExplorerError:
        return True
    return any(manifest.attributes.get("recording", recording) == recording for manifest in manifests)


def _short(directory: str) -> str:
    relative = os.path.relpath(directory)
    return directory if relative.startswith("..") else relative


def _die_of(number: int) -> None:
    """End as the program ended, so that shells and schedulers see the same signal."""
    signal.signal(number, signal.SIG_DFL) if number not in (signal.SIGKILL, signal.SIGSTOP) else None
    os.kill(os.getpid(), number)
