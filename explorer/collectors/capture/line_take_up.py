"""When lines are recorded again after a hot loop switched them off: soon, and later where it did not last."""

from __future__ import annotations

import sys
import threading
import time

from explorer.collectors.capture.main_thread_call import MainThreadCall
from explorer.collectors.capture.windows import Windows

TAKE_UP_SECONDS = 0.02
"""How long line recording stays off after a hot loop switched it off, unless a step ends before."""

LONGEST_WAIT_SECONDS = 1.0
"""The same where taking it up did not last: the wait doubles up to this."""


class LineTakeUp:
    """Watches the recorder of the main thread; recording is taken up between two of its bytecodes."""

    def __init__(self, windows: Windows) -> None:
        self._windows = windows
        self._wait_seconds = TAKE_UP_SECONDS
        self._taken_up = 0.0
        self._soon = MainThreadCall(self._take_up)

    def start(self) -> None:
        recorder = self._windows.recorder
        if recorder is not None and threading.current_thread() is threading.main_thread():
            recorder.on_switched_off = self._switched_off

    def stop(self) -> None:
        self._soon.stop()

    def forget(self) -> None:
        """In a forked child."""
        self._soon.forget()

    def _switched_off(self) -> None:
        lasted = time.monotonic() - self._taken_up
        short = lasted < 5 * self._wait_seconds
        self._wait_seconds = min(2 * self._wait_seconds, LONGEST_WAIT_SECONDS) if short else TAKE_UP_SECONDS
        self._soon.after(self._wait_seconds)

    def _take_up(self) -> None:
        windows = self._windows
        if windows.running and windows.recording and windows.recorder is not None:
            if windows.recorder.take_up(sys._getframe(2)):
                self._taken_up = time.monotonic()
            else:
                self._wait_seconds = min(2 * self._wait_seconds, LONGEST_WAIT_SECONDS)
                self._soon.after(self._wait_seconds)
