"""Threads for questions: as many as are asked, and none that a program which has ended still waits for."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock, Thread
from time import monotonic
from typing import Any


class QuestionThreads(ThreadPoolExecutor):
    """A thread for each call.

    A pool of a few threads would fill with questions that wait for their turn, and details under the cursor would wait
    behind them; and a pool is joined when the program ends, however long its calls take.
    """

    def __init__(self) -> None:
        super().__init__(max_workers=1)
        self._running: set[Thread] = set()
        self._lock = Lock()

    def submit(self, call: Callable[..., Any], /, *args: Any, **named: Any) -> Future[Any]:  # type: ignore[override]
        """Run the call in a new thread."""
        future: Future[Any] = Future()

        def run() -> None:
            try:
                if future.set_running_or_notify_cancel():
                    try:
                        future.set_result(call(*args, **named))
                    except BaseException as error:
                        future.set_exception(error)
            finally:
                with self._lock:
                    self._running.discard(thread)

        thread = Thread(target=run, name="question", daemon=True)
        with self._lock:
            self._running.add(thread)
        thread.start()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Nothing to wait for."""

    def all_ended(self, within_s: float) -> bool:
        """Whether every call has ended, waiting so long for them."""
        end = monotonic() + within_s
        with self._lock:
            running = list(self._running)
        for thread in running:
            thread.join(max(0.0, end - monotonic()))
        return not any(thread.is_alive() for thread in running)
