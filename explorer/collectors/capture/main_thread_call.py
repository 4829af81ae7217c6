"""Run something on the main thread soon, between two bytecodes, from a thread that waits.

Used to take up line recording again after a hot loop switched it off, and to end windows of programs without steps.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable

from explorer.collectors.hidden_thread import HiddenThread
from explorer.collectors.lines.user_code import standard_roots

_OURS = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "")
_ADD = ctypes.pythonapi.Py_AddPendingCall
_CALL = ctypes.cast(ctypes.pythonapi.PyObject_IsTrue, ctypes.c_void_p)
"""Calls `__bool__`, and passes on what that raises: a callback of ctypes would lose it."""


class MainThreadCall:
    """One pending call at a time. `action` runs on the main thread and must not raise; what it raises is dropped. What a
    signal handler of the program raises meanwhile reaches the program."""

    def __init__(self, action: Callable[[], None]) -> None:
        self._action = action
        # Set to end the wait that is arranged.
        self._cancelled: threading.Event | None = None
        self._arranged = False
        # The main thread may be called here while it is in here.
        self._lock = threading.RLock()
        self._stopped = False

    def after(self, seconds: float) -> None:
        """Arrange the call; does nothing while one is arranged already."""
        with self._lock:
            if self._arranged or self._stopped:
                return
            self._arranged = True
            cancelled = self._cancelled = threading.Event()
            HiddenThread(lambda: self._wait(cancelled, seconds))

    def now(self) -> None:
        """Have it called at the main thread's next opportunity."""
        if not self._stopped:
            _ADD(_CALL, ctypes.py_object(self))

    def stop(self) -> None:
        """No call after this one returns, except one that is already pending, which does nothing."""
        with self._lock:
            self._stopped = True
            cancelled, self._cancelled = self._cancelled, None
        if cancelled is not None:
            cancelled.set()

    def forget(self) -> None:
        """In a forked child: the thread that waits does not exist here."""
        self._lock = threading.RLock()
        self._stopped = True
        self._cancelled = None

    def _wait(self, cancelled: threading.Event, seconds: float) -> None:
        if not cancelled.wait(seconds):
            self._fire()

    def _fire(self) -> None:
        with self._lock:
            self._cancelled = None
            self._arranged = False
            if self._stopped:
                return
        _ADD(_CALL, ctypes.py_object(self))

    def __bool__(self) -> bool:
        """The pending call: never true, which would be an error."""
        if not self._stopped:
            try:
                self._action()
            except Exception as error:
                if _is_the_programs(error):
                    raise
        return False


def _is_the_programs(error: Exception) -> bool:
    """Whether code of the program, which only a signal can have called, had a part in it."""
    trace = error.__traceback__
    while trace is not None:
        if not trace.tb_frame.f_code.co_filename.startswith((_OURS, *standard_roots())):
            return True
        trace = trace.tb_next
    return False
