"""When lines are recorded again after hot code switched them off: soon, and later where it did not last."""

from __future__ import annotations

import threading
import time
from types import FrameType

from explorer.collectors.capture.main_thread_call import MainThreadCall
from explorer.collectors.capture.windows import Windows

FIRST_WAIT_SECONDS = 0.003
WAIT_GROWTH = 1.5
LONGEST_WAIT_SECONDS = 0.02
"""The first wait, how each next one grows while the hot code still runs, and the longest: what comes after hot code in the
same function is not missed for longer. What comes after the function ended is not missed at all, where the recorder sees
that end."""


class LineTakeUp:
    """Watches the recorder of the main thread; recording is taken up between two of its bytecodes."""

    def __init__(self, windows: Windows) -> None:
        self._windows = windows
        self._wait_seconds = FIRST_WAIT_SECONDS
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
        self._next(grow=lasted < self._wait_seconds)

    def _next(self, *, grow: bool) -> None:
        longer = min(WAIT_GROWTH * self._wait_seconds, LONGEST_WAIT_SECONDS)
        self._wait_seconds = longer if grow else FIRST_WAIT_SECONDS
        self._soon.after(self._wait_seconds)

    def _take_up(self, frame: FrameType) -> None:
        windows = self._windows
        if windows.running and windows.recording and windows.recorder is not None:
            if windows.recorder.take_up(frame):
                self._taken_up = time.monotonic()
            else:
                self._next(grow=True)
