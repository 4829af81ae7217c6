"""Questions to the run, answered off the UI thread: a newer question of the same kind cancels the older one."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any, TypeVar

from textual.widget import Widget
from textual.worker import Worker, get_current_worker

from explorer.model.errors import ExplorerError

if TYPE_CHECKING:
    from textual.screen import Screen

    from explorer.analysis.run import Run

T = TypeVar("T")


class Data:
    """The open run, with the answers already given.

    Screens ask with `ask`; the call runs in a worker thread with the run as its argument, and `then` runs on the UI
    thread with the answer. Calls are methods of Run or functions of explorer.analysis: no screen holds SQL.
    """

    def __init__(self, run: Run) -> None:
        self.run = run
        self._answers: dict[Hashable, Any] = {}

    def forget(self) -> None:
        """Drop the answers: the run has grown."""
        self._answers.clear()

    def ask(
        self,
        owner: Widget | Screen[Any],
        group: str,
        call: Callable[[Run], T],
        then: Callable[[T], None],
        *,
        key: Hashable = None,
        failed: Callable[[str], None] | None = None,
    ) -> Worker[None] | None:
        """Run `call(run)` in a thread and hand its answer to `then` on the UI thread.

        Args:
            owner: the widget that asks; when it is gone the answer is dropped.
            group: kind of question; a new one of the same owner and kind cancels the one before.
            call: what to compute.
            then: what to do with the answer.
            key: where given, the answer is kept, and given at once the next time.
            failed: what to do with an error's text; None: a notification.
        """
        if key is not None and key in self._answers:
            then(self._answers[key])
            return None
        app = owner.app

        def answer(worker: Worker[None], value: T) -> None:
            if key is not None:
                self._answers[key] = value
            if not worker.is_cancelled and owner.is_attached:
                then(value)

        def fail(worker: Worker[None], text: str) -> None:
            if worker.is_cancelled or not owner.is_attached:
                return
            if failed is not None:
                failed(text)
            else:
                app.notify(text, severity="error", markup=False)

        def work() -> None:
            worker = get_current_worker()
            try:
                value = call(self.run)
            except ExplorerError as error:
                if not worker.is_cancelled:
                    app.call_from_thread(fail, worker, str(error))
                return
            if not worker.is_cancelled:
                app.call_from_thread(answer, worker, value)

        return owner.run_worker(work, thread=True, group=group, exclusive=True, exit_on_error=True)
