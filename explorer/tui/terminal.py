"""Whether there is a terminal to draw on."""

from __future__ import annotations

import sys


def need_terminal() -> None:
    """Raises UsageError where standard input or output is no terminal."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        from explorer.model.errors import UsageError

        raise UsageError(
            "The terminal UI needs a terminal.",
            "Use a reading verb such as bottlenecks, or --screenshot FILE.svg --screen overview.",
        )
