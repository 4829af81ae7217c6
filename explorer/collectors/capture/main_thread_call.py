"""Run something on the main thread soon, between two bytecodes, from a thread that waits.

Used to take up line recording again after a hot loop switched it off, and to end windows of programs without steps.
"""

from __future__ import annotations

import contextlib
import ctypes
import threading
from collections.abc import Callable
from typing import Any

_CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)


class MainThreadCall:
    """One pending call at a time. `action` runs on the main thread and must not raise; what it raises is dropped."""

    def __init__(self, action: Callable[[], None]) -> None:
        self._action = action
        self._timer: threading.Timer | None = None
        self._arranged = False
        # The main thread may be called here while it is in here.
        self._lock = threading.RLock()
        self._stopped = False
        # Kept alive as long as the interpreter may call it.
        self._pending: Any = _CALLBACK(self._run)

    def after(self, seconds: float) -> None:
        """Arrange the call; does nothing while one is arranged already."""
        with self._lock:
            if self._arranged or self._stopped:
                return
            self._arranged = True
            timer = threading.Timer(seconds, self._fire)
            timer.name = "neuron-explorer-timer"
            timer.daemon = True
            self._timer = timer
            timer.start()

    def now(self) -> None:
        """Have it called at the main thread's next opportunity."""
        if not self._stopped:
            ctypes.pythonapi.Py_AddPendingCall(self._pending, None)

    def stop(self) -> None:
        """No call after this one returns, except one that is already pending, which does nothing."""
        with self._lock:
            self._stopped = True
            timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()

    def forget(self) -> None:
        """In a forked child: the timer's thread does not exist here."""
        self._lock = threading.RLock()
        self._stopped = True
        self._timer = None

    def _fire(self) -> None:
        with self._lock:
            self._timer = None
            self._arranged = False
            if self._stopped:
                return
        ctypes.pythonapi.Py_AddPendingCall(self._pending, None)

    def _run(self, _: Any) -> int:
        if not self._stopped:
            with contextlib.suppress(Exception):
                self._action()
        return 0
