"""One engine that answers one question after the other, and can drop the one it is at."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from explorer.analysis.run import Run

T = TypeVar("T")
Kind = tuple[int, str]
"""Who asks, and what for: a newer question of the same kind makes the older one stale."""


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
        self._current: Kind | None = None

    def answer(self, kind: Kind, call: Callable[[Run], T], is_stale: Callable[[], bool]) -> T:
        """Wait for its turn and answer. Raises StaleError where `is_stale` says so before, or after an interruption."""
        import duckdb

        with self._turn:
            if is_stale():
                raise StaleError
            if self._run is None:
                self._run = self._open_run()
            self._current = kind
            try:
                try:
                    return call(self._run)
                except duckdb.InterruptException:
                    # Meant for this question where it is stale; else for the one before, a moment late: ask again.
                    if is_stale():
                        raise StaleError from None
                    return call(self._run)
            finally:
                self._current = None

    def drop(self, kind: Kind) -> None:
        """Stop the question that is being answered, if it is of this kind."""
        if self._current == kind:
            self.stop()

    def stop(self) -> None:
        """Stop whatever is being answered."""
        if self._run is not None:
            self._interrupt(self._run)
