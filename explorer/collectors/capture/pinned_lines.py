"""The line of rare calls that matter (a collective, an optimizer's step, a file) is exact though line recording rests there."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from explorer.collectors.lines.records import LineRecorder


class PinnedLines:
    """To be asked by wrappers around such calls, on any thread: `token = pins.begin()`, the call, `pins.end(token)`."""

    def __init__(self, recorder: Callable[[], LineRecorder | None]) -> None:
        """`recorder`: the one that records now, if any does."""
        self._recorder = recorder

    def begin(self, *, calls_back: bool = False) -> int | None:
        """The call begins. Where it may call code of the program (`calls_back`), its line is only likely to hold until its
        end. Returns what `end` wants."""
        recorder = self._recorder()
        return recorder.pin(sys._getframe(1), calls_back) if recorder is not None else None

    def end(self, token: int | None) -> None:
        """The call ended, however it did."""
        recorder = self._recorder() if token is not None else None
        if recorder is not None and token is not None:
            recorder.unpin(sys._getframe(1), token)

    def now(self) -> int:
        """The time, in nanoseconds as of time.time_ns(): the line is exact at this moment."""
        recorder = self._recorder()
        frame = sys._getframe(1)
        token = recorder.pin(frame) if recorder is not None else None
        now = time.time_ns()
        if recorder is not None and token is not None:
            recorder.unpin(frame, token)
        return now


NO_PINS = PinnedLines(lambda: None)
"""Where no lines are recorded."""
