"""SIGTERM while recording: write the open window, then die of the signal as the program would have."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from types import FrameType


class Termination:
    """Active only where the program has no handler of its own and the capture runs on the main thread."""

    def __init__(self, save: Callable[[], None]) -> None:
        self._save = save
        self._installed = False

    def start(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            return
        if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            signal.signal(signal.SIGTERM, self._received)
            self._installed = True

    def stop(self) -> None:
        """Put the default back, unless the program installed a handler since."""
        if self._installed and threading.current_thread() is threading.main_thread():
            if signal.getsignal(signal.SIGTERM) == self._received:
                signal.signal(signal.SIGTERM, signal.SIG_DFL)
            self._installed = False

    def forget(self) -> None:
        """In a forked child: SIGTERM ends it at once, as it would have."""
        self.stop()

    def _received(self, number: int, frame: FrameType | None) -> None:
        try:
            self._save()
        finally:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGTERM)
