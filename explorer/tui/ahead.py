"""Opens the run while the screens' libraries load: both are waited for, and neither waits for the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from concurrent.futures import Future

    from explorer.analysis.run import Run
    from explorer.tui.threads import QuestionThreads


class OpenedAhead:
    """Calling it gives the run that is being opened; calling it again opens the run anew.

    What the first screen asks is asked here already (`first_answer`), and the screen gets that answer. Errors of opening are raised to the first caller; those of the question are not: the screen asks
    again, and says what is wrong.

    Args:
        open_run: opens the run.
        threads: where that happens.
        first_question: what the first screen will ask; None: nothing.
    """

    def __init__(
        self,
        open_run: Callable[[], Run],
        threads: QuestionThreads,
        first_question: Callable[[Run], object] | None = None,
    ) -> None:
        self._open_run = open_run
        self._threads = threads
        self._first_question = first_question
        self._given = False
        self._opened: Future[Run] = threads.submit(self._open)

    def _open(self) -> Run:
        run = self._open_run()
        if self._first_question is not None:
            self._threads.submit(self._first_question, run)
        return run

    def __call__(self) -> Run:
        """The run. Raises what opening it raised."""
        if self._given:
            return self._open_run()
        self._given = True
        return self._opened.result()
