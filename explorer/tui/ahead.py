"""Opens the run in a thread while the screens' libraries load: both are waited for, and neither waits for the other."""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from explorer.analysis.run import Run


class OpenedAhead:
    """Calling it gives the run that is being opened; calling it again opens the run anew.

    What the first screen asks is asked here already, and what the engine keeps of it makes the screen's own question a
    matter of milliseconds. Errors of opening are raised to the first caller; those of the question are not: the screen asks
    again, and says what is wrong.

    Args:
        open_run: opens the run.
        first_question: what the first screen will ask; None: nothing.
    """

    def __init__(
        self, open_run: Callable[[], Run], first_question: Callable[[Run], object] | None = None
    ) -> None:
        self._open_run = open_run
        self._first_question = first_question
        self._opened: Run | None = None
        self._error: BaseException | None = None
        self._given = False
        self._opening = Thread(target=self._open, name="open run", daemon=True)
        self._opening.start()

    def _open(self) -> None:
        try:
            self._opened = self._open_run()
        except Exception as error:
            self._error = error
            return
        if self._first_question is not None:
            Thread(target=self._ask, args=(self._opened,), name="first question", daemon=True).start()

    def _ask(self, run: Run) -> None:
        from contextlib import suppress

        assert self._first_question is not None
        with suppress(Exception):
            self._first_question(run)

    def __call__(self) -> Run:
        """The run. Raises what opening it raised."""
        if self._given:
            return self._open_run()
        self._given = True
        self._opening.join()
        if self._error is not None:
            raise self._error
        assert self._opened is not None
        return self._opened
