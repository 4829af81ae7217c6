"""When lines are recorded again after a hot loop switched them off: soon, and later where it did not last."""

from __future__ import annotations

import sys
import threading
import time

from explorer.collectors.capture.main_thread_call import MainThreadCall
from explorer.collectors.capture.windows import Windows

HOT_LINES_SECONDS = 0.003
HOT_LINES_GROWTH = 1.5
"""The first wait after the lines of one code object switched recording off, and how each next one grows while that code
still runs: what comes after it is not missed for longer than half of what it took. Taking recording up costs nothing
then: its next line switches it off again."""

TAKE_UP_SECONDS = 0.02
"""The first wait after too many calls switched it off (each try traces thousands of them), unless a step ends before."""

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
        if not self._by_calls():
            self._wait_seconds = HOT_LINES_SECONDS
            self._soon.after(self._wait_seconds)
            return
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
                growth = 2 if self._by_calls() else HOT_LINES_GROWTH
                self._wait_seconds = min(growth * self._wait_seconds, LONGEST_WAIT_SECONDS)
                self._soon.after(self._wait_seconds)

    def _by_calls(self) -> bool:
        recorder = self._windows.recorder
        return recorder is None or recorder.off_by_calls
