"""Run something on the main thread soon, between two bytecodes, from a thread that waits.

Used to take up line recording again after a hot loop switched it off, and to end windows of programs without steps.
"""

from __future__ import annotations

import _thread
import contextlib
import ctypes
import math
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from types import FrameType
from typing import Any

from explorer.collectors.hidden_thread import HiddenThread
from explorer.collectors.lines import frame_end
from explorer.collectors.lines.user_code import standard_roots

_NEVER = math.inf
_SOON_SECONDS = 0.001
_OURS = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "")
_ADD = ctypes.pythonapi.Py_AddPendingCall
_CALL = ctypes.cast(ctypes.pythonapi.PyObject_IsTrue, ctypes.c_void_p)
"""Calls `__bool__`, and passes on what that raises: a callback of ctypes would lose it."""


class _PendingCall:
    """The only pending call that this process ever has from us: whatever is due runs in it.

    CPython 3.11 never comes out of a Python function that is entered, while traced, from within a pending call if another one
    was added meanwhile: its entry looks for pending calls first, does not run any inside another, and looks again.
    """

    def __init__(self) -> None:
        self._due: deque[MainThreadCall] = deque()
        self._is_pending = False
        self.lock = threading.RLock()

    def add(self, call: MainThreadCall) -> None:
        with self.lock:
            if call not in self._due:
                self._due.append(call)
            if self._is_pending:
                return
            # On the main thread the call may be over before the next line is reached.
            self._is_pending = True
            if _ADD(_CALL, ctypes.py_object(self)) != 0:
                self._is_pending = False

    def __bool__(self) -> bool:
        """The pending call: never true, which would be an error."""
        frame = sys._getframe().f_back
        try:
            while self._due:
                call = self._due.popleft()
                # At the end of the interpreter no frame is left.
                if frame is not None:
                    call.run(frame)
        finally:
            # From here on no Python function is entered: see above.
            with self.lock:
                self._is_pending = bool(self._due)
                if self._is_pending and _ADD(_CALL, ctypes.py_object(self)) != 0:
                    self._is_pending = False
        return False


_PENDING = _PendingCall()


class MainThreadCall:
    """One call at a time. `action` runs on the main thread, gets the frame that the thread is in, and must not raise; what it
    raises is dropped. What a signal handler of the program raises meanwhile reaches the program."""

    def __init__(self, action: Callable[[FrameType], None]) -> None:
        self._action = action
        self._due = _NEVER
        """When it is to be made, as of time.monotonic()"""
        # Released where the waiting thread has to look again. One thread waits for all the times: starting one costs ten
        # times as much as waking it.
        self._wake: Any = None
        # The main thread may be called here while it is in here.
        self._lock = threading.RLock()
        self._stopped = False

    def after(self, seconds: float) -> None:
        """Arrange the call; does nothing while one is arranged already."""
        with self._lock:
            if self._due != _NEVER or self._stopped:
                return
            self._due = time.monotonic() + seconds
            if self._wake is not None:
                _release(self._wake)
                return
            wake = self._wake = _thread.allocate_lock()
            wake.acquire()
            HiddenThread(lambda: self._wait(wake))

    def now(self) -> None:
        """Have it called at the main thread's next opportunity."""
        if not self._stopped:
            _PENDING.add(self)

    def stop(self) -> None:
        """No call after this one returns, except one that is already pending, which does nothing."""
        with self._lock:
            self._stopped = True
            if self._wake is not None:
                _release(self._wake)

    def forget(self) -> None:
        """In a forked child: the thread that waits does not exist here."""
        self._lock = threading.RLock()
        self._stopped = True
        self._wake = None
        _PENDING.lock = threading.RLock()

    def _wait(self, wake: Any) -> None:
        while not self._stopped:
            left = self._due - time.monotonic()
            if left > 0:
                wake.acquire(timeout=min(left, threading.TIMEOUT_MAX))
                continue
            with self._lock:
                self._due = _NEVER
            self.now()

    def run(self, frame: FrameType) -> None:
        """On the main thread: act, unless stopped."""
        if not self._stopped:
            try:
                self._action(frame)
            except Exception as error:
                if _is_the_programs(error):
                    raise


def raise_soon(error: BaseException) -> None:
    """Raise in the main thread what a signal handler of the program raised where the interpreter drops it."""

    def action(frame: FrameType | None) -> None:
        while frame is not None:
            if frame.f_code is frame_end.FrameEnd.__del__.__code__:
                # Still there.
                call.after(_SOON_SECONDS)
                return
            frame = frame.f_back
        call.stop()
        raise error

    call = MainThreadCall(action)
    call.after(_SOON_SECONDS)


frame_end.raise_soon = raise_soon


def _release(lock: Any) -> None:
    with contextlib.suppress(RuntimeError):
        # Already released: the thread has not come to look yet.
        lock.release()


def _is_the_programs(error: Exception) -> bool:
    """Whether code of the program, which only a signal can have called, had a part in it."""
    trace = error.__traceback__
    while trace is not None:
        if not trace.tb_frame.f_code.co_filename.startswith((_OURS, *standard_roots())):
            return True
        trace = trace.tb_next
    return False
