"""Tells the line recorder when the main thread has been running Python for a while without letting go of the interpreter.

Ops let go of it. Code that does not may be a library that loops without a call, which a tracer slows down unseen.
"""

from __future__ import annotations

import sys
import threading
import time
from types import FrameType

from explorer.collectors.capture.main_thread_call import MainThreadCall
from explorer.collectors.capture.windows import Windows
from explorer.collectors.hidden_thread import HiddenThread

TICK_SECONDS = 0.02


class PythonWatch:
    """A thread that wakes up now and then and notes how long it waits for the interpreter."""

    def __init__(self, windows: Windows) -> None:
        self._windows = windows
        self._over = threading.Event()
        self._call = MainThreadCall(self._tick)
        self._thread: HiddenThread | None = None

    def start(self) -> None:
        recorder = self._windows.recorder
        if recorder is None or recorder.method != "sys.settrace":
            # sys.monitoring spares library code.
            return
        if threading.current_thread() is not threading.main_thread():
            return
        self._thread = HiddenThread(self._watch)

    def stop(self) -> None:
        self._over.set()
        self._call.stop()
        if self._thread is not None:
            self._thread.join(timeout_seconds=5)
            self._thread = None

    def forget(self) -> None:
        """In a forked child."""
        self._over = threading.Event()
        self._over.set()
        self._thread = None
        self._call.forget()

    def _watch(self) -> None:
        while True:
            asked = time.monotonic()
            if self._over.wait(TICK_SECONDS):
                return
            late = time.monotonic() - asked - TICK_SECONDS
            if late > 0.6 * sys.getswitchinterval():
                self._call.now()

    def _tick(self, frame: FrameType) -> None:
        windows = self._windows
        if windows.running and windows.recording and windows.recorder is not None:
            windows.recorder.tick(frame)
