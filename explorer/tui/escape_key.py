"""Tells the Escape key from the beginning of another key's sequence sooner than the library does."""

from __future__ import annotations

import os
import selectors
import sys
from types import SimpleNamespace

ESCAPE_SECONDS = 0.015
"""Escape is the key, and not the beginning of a sequence, where nothing follows for so long. Terminals and ssh send a sequence in
one piece; the library would wait for a tenth of a second."""


class SoonAgain(selectors.SelectSelector):
    """Right after input it waits only so long for more that a lone Escape is noticed; without any it waits as it is told."""

    _after_input = False

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(ESCAPE_SECONDS if self._after_input else timeout)
        self._after_input = bool(ready)
        return ready


def tell_escape_soon() -> None:
    """Have the terminal's input read so, unless the user says otherwise (ESCDELAY, in milliseconds)."""
    if "ESCDELAY" in os.environ or sys.platform == "win32":
        return
    from textual import constants
    from textual.drivers import linux_driver

    vars(constants)["ESCAPE_DELAY"] = ESCAPE_SECONDS
    vars(linux_driver)["selectors"] = SimpleNamespace(
        SelectSelector=SoonAgain, EVENT_READ=selectors.EVENT_READ
    )
