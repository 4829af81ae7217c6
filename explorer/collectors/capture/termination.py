"""A program ended from outside, or by `os._exit`: write the open window first, then end as it would have."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable
from types import FrameType

ENDING = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))
"""Signals that end a program from outside while it could still say something."""


class Termination:
    """Active only where the program has no handler of its own and the capture runs on the main thread."""

    def __init__(self, save: Callable[[], None]) -> None:
        self._save = save
        self._saving = False
        self._installed: list[int] = []
        self._exit: Callable[[int], None] | None = None
        # One object, so that `stop` knows its own.
        self._replacement = self._leave

    def start(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            return
        for number in ENDING:
            if signal.getsignal(number) is signal.SIG_DFL:
                signal.signal(number, self._received)
                self._installed.append(number)
        self._exit = os._exit
        os._exit = self._replacement  # type: ignore[assignment]

    def stop(self) -> None:
        """Put the defaults back, unless the program installed something since."""
        if self._exit is not None and os._exit is self._replacement:
            os._exit = self._exit  # type: ignore[assignment]
        if self._installed and threading.current_thread() is threading.main_thread() and not self._saving:
            for number in self._installed:
                if signal.getsignal(number) == self._received:
                    signal.signal(number, signal.SIG_DFL)
            self._installed.clear()

    def forget(self) -> None:
        """In a forked child: whatever ends it does so at once, as it would have."""
        self._saving = False
        self.stop()

    def _received(self, number: int, frame: FrameType | None) -> None:
        if self._saving:
            # Launchers send it twice; the first one is being obeyed.
            return
        self._saving = True
        try:
            self._save()
        finally:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)

    def _leave(self, status: int) -> None:
        try:
            if threading.current_thread() is threading.main_thread() and not self._saving:
                self._saving = True
                with contextlib.suppress(Exception):
                    self._save()
        finally:
            if self._exit is not None:
                self._exit(status)
