"""One line for op time and one for device time: what share has a source line."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from explorer.analysis.run import Run


def print_lines_known(run: Run) -> None:
    """Print what share of op time and of device time has an exact line, another one, and none."""
    from rich.text import Text

    from explorer.analysis.line_coverage import line_coverage
    from explorer.cli.table import console, print_hanging

    for known in line_coverage(run):
        print_hanging(Text("Lines known  ", style="bold"), known.sentence, to=console())
