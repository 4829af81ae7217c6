"""One engine that answers one question after the other, and can drop the one it is at."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from explorer.analysis.run import Run

T = TypeVar("T")
Kind = tuple[int, str]
"""Who asks, and what for: a newer question of the same kind makes the older one stale."""
AGAIN_SECONDS = 0.05


class StaleError(Exception):
    """Nobody waits for the answer any more."""


class Lane:
    """Questions to one run, in turn.

    Args:
        open_run: gives the run, at the first question.
        interrupt: stops what the run is computing.
    """

    def __init__(self, open_run: Callable[[], Run], interrupt: Callable[[Run], None]) -> None:
        self._open_run = open_run
        self._interrupt = interrupt
        self._run: Run | None = None
        self._turn = Lock()
        self._guard = Lock()
        self._current: tuple[Kind, Event] | None = None
        """The question being answered, and its end"""

    def answer(self, kind: Kind, call: Callable[[Run], T], is_stale: Callable[[], bool]) -> T:
        """Wait for its turn and answer. Raises StaleError where `is_stale` says so before, or after an interruption."""
        import duckdb

        with self._turn:
            if is_stale():
                raise StaleError
            if self._run is None:
                self._run = self._open_run()
            ended = Event()
            with self._guard:
                self._current = kind, ended
            try:
                return call(self._run)
            except duckdb.InterruptException:
                raise StaleError from None
            finally:
                with self._guard:
                    self._current = None
                ended.set()

    def drop(self, kind: Kind) -> None:
        """Stop the question that is being answered, if it is of this kind."""
        current = self._current
        if current is not None and current[0] == kind:
            Thread(target=self._stop, args=(current[1],), name="drop question", daemon=True).start()

    def _stop(self, ended: Event) -> None:
        """Interrupt until the question ends: between two statements there is nothing to interrupt."""
        while True:
            with self._guard:
                if ended.is_set() or self._current is None or self._current[1] is not ended:
                    return
                self.stop()
            if ended.wait(AGAIN_SECONDS):
                return

    def stop(self) -> None:
        """Stop whatever is being answered."""
        if self._run is not None:
            self._interrupt(self._run)
