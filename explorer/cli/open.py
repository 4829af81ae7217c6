"""`open`: the terminal UI."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from explorer.cli.options import RunArgument

if TYPE_CHECKING:
    from explorer.analysis.run import Run


def command(
    run: RunArgument,
    screen: Annotated[
        str, typer.Option("--screen", help="First screen: overview, timeline, source, ops ...")
    ] = "overview",
) -> int:
    """The terminal UI: overview with findings, timeline, source lines, ops and the rest, by keys that its footer names."""
    from explorer.cli.source_run import run_directory
    from explorer.tui.app import run_app

    directory, code = run_directory(run)

    def opened() -> Run:
        from explorer.analysis.run import open_run

        return open_run(directory)

    run_app(opened, run, screen=screen)
    return code
