"""Runs the terminal UI in this process, from its start until nothing of it is left."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from explorer.tui.app import ExplorerApp
from explorer.tui.escape_key import tell_escape_soon
from explorer.tui.terminal import need_terminal

if TYPE_CHECKING:
    from explorer.analysis.run import Run

LAST_SECONDS = 0.5
LONGEST_SECONDS = 30.0
"""For questions to end when the UI has, and when it has failed"""
SWITCH_SECONDS = 0.001


def run_app(open_run: Callable[[], Run], run_name: str = "", **options: Any) -> bool:
    """Run the terminal UI until the user quits. Returns whether every question has ended; one in the middle of a long
    calculation outlives the UI.

    Raises UsageError without a terminal, the ExplorerError of opening, or the error of a crash, with the terminal
    restored in each case.
    """
    need_terminal()
    app = ExplorerApp(open_run, run_name, **options)
    _favour_the_screen()
    tell_escape_soon()
    app.run()
    if app.data is not None:
        app.data.close()
    ended = app.threads.all_ended(within_s=LAST_SECONDS)
    if error := app.failure or app.crash:
        # Whoever reports the error ends the process in the usual way, which no thread inside a library survives.
        app.threads.all_ended(within_s=LONGEST_SECONDS)
        raise error
    return ended


def _favour_the_screen() -> None:
    """Settings of the interpreter for short pauses: threads hand over quickly, and garbage is looked for rarely and not
    among what was loaded at the start."""
    import gc

    sys.setswitchinterval(SWITCH_SECONDS)
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)
