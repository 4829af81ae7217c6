"""`open`: the terminal UI, or a picture of one of its screens."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from explorer.cli.options import CacheOption, RunArgument
from explorer.model.errors import EXIT_DONE

if TYPE_CHECKING:
    from explorer.analysis.run import Run
    from explorer.store.reader import RunReader


def command(
    run: RunArgument,
    screen: Annotated[
        str, typer.Option("--screen", help="First screen: overview, timeline, source, ops ...")
    ] = "overview",
    baseline: Annotated[
        str | None, typer.Option("--baseline", help="A second run, for the compare screen")
    ] = None,
    screenshot: Annotated[
        str | None, typer.Option("--screenshot", help="Draw the screen to this SVG file instead")
    ] = None,
    size: Annotated[
        str, typer.Option("--size", help="Columns x rows of the picture, such as 120x36")
    ] = "120x36",
    theme: Annotated[str | None, typer.Option("--theme", help="Theme of the picture")] = None,
    press: Annotated[str, typer.Option("--press", help="Keys to press first, comma-separated")] = "",
    cache_dir: CacheOption = None,
) -> int:
    """The terminal UI: overview with findings, timeline, source lines, ops and the rest, by keys that its footer names."""
    from explorer.cli.source_run import run_directory

    directory, code = run_directory(run, cache_dir)
    readers: dict[str, RunReader] = {}
    second = _opener(run_directory(baseline, cache_dir)[0], readers) if baseline else None
    if screenshot is None:
        from explorer.tui.ahead import OpenedAhead
        from explorer.tui.terminal import need_terminal
        from explorer.tui.threads import QuestionThreads

        need_terminal()
        threads = QuestionThreads()
        opened = OpenedAhead(
            _opener(directory, readers), threads, _overview if screen == "overview" else None
        )
        from explorer.cli.crash import write_crash_report
        from explorer.tui.find_apart import FindApart
        from explorer.tui.run_app import run_app

        ended = run_app(
            opened,
            run,
            screen=screen,
            baseline=second,
            open_path=lambda path: _opener(run_directory(path)[0])(),
            report=lambda error: write_crash_report(error, ["open", run]),
            threads=threads,
            find=FindApart(),
            load_ahead=True,
        )
        code = max(code, *_loss_codes(readers))
        if not ended:
            # A thread inside a library cannot be ended, and nobody waits for its answer any more.
            sys.stdout.flush()
            os._exit(code)
        return code
    from explorer.tui.screenshot import parse_size, save_screenshot

    save_screenshot(
        _opener(directory, readers),
        screenshot,
        run_name=run,
        screen=screen,
        size=parse_size(size),
        theme=theme,
        press=[key for key in press.split(",") if key],
        baseline=second,
    )
    return max(code, *_loss_codes(readers))


def _opener(directory: str, readers: dict[str, RunReader] | None = None) -> Callable[[], Run]:
    """Opens the run; `readers` keeps how it was read, by the run's directory."""

    def opened() -> Run:
        from explorer.analysis.run import open_run
        from explorer.store.arrow_alone import keep_pandas_out

        keep_pandas_out()
        run = open_run(directory)
        if readers is not None:
            readers[directory] = run.reader
        return run

    return opened


def _loss_codes(readers: dict[str, RunReader]) -> list[int]:
    from explorer.cli.source_run import loss_code

    return [EXIT_DONE, *(loss_code(reader, directory) for directory, reader in list(readers.items()))]


def _overview(run: Run) -> object:
    from explorer.tui.first_answer import first_answer

    return first_answer(run)
