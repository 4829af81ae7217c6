"""One line for op time and one for device time: what share has a source line. Then the same by phase."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from explorer.analysis.run import Run


_ALL = 0.9995
"""From this share on it is shown as 100 %"""


def print_lines_known(run: Run, *, every_phase: bool) -> None:
    """Print what share of op time and of device time has an exact line, another one, and none and why.

    Below each its phases: with `every_phase` all, else those in which not every line is exactly known.
    """
    from rich.text import Text

    from explorer.analysis.line_coverage import line_coverage
    from explorer.cli.table import console, print_hanging

    out = console()
    for known in line_coverage(run):
        print_hanging(Text("Lines known  ", style="bold"), known.sentence, to=out)
        for part in known.phases:
            if every_phase or part.exact_share < _ALL:
                print_hanging("               ", part.sentence, to=out)
