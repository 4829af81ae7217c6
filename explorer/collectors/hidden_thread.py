"""A thread of the profiler that the program it runs in does not see.

A program may count, list and join its threads. Those that are started here are in none of these lists, and what the program
gives to `threading.settrace` and `threading.setprofile` does not reach them. Code that runs in one must not call
`threading.current_thread`, which would put the thread on the list.
"""

from __future__ import annotations

import _thread
import contextlib
import threading
from collections.abc import Callable


class HiddenThread:
    """Runs `target` at once in a thread that does not keep the interpreter alive. What it raises is dropped.

    Raises:
        RuntimeError: the system gives no thread.
    """

    def __init__(self, target: Callable[[], object]) -> None:
        self._target = target
        self._ended = threading.Event()
        _thread.start_new_thread(self._run, ())

    def join(self, timeout_seconds: float | None = None) -> bool:
        """Wait until it has ended; False where it has not after `timeout_seconds`."""
        return self._ended.wait(timeout_seconds)

    def _run(self) -> None:
        try:
            with contextlib.suppress(Exception):
                self._target()
        finally:
            self._ended.set()
