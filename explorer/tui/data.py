"""Questions to the run, answered off the UI thread: a newer question of the same kind cancels the older one."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from threading import Lock
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

    One engine answers one statement at a time, so quick questions (details under the cursor) have an engine of their
    own: they never wait for an analysis of the whole run, and a stale one is interrupted.

    Args:
        run: the open run.
        again: opens it once more, for the quick engine.
        broken: told of an unexpected error (in the worker thread), returns what to tell the user; None: the error ends
            the app, as tests want it.
    """

    def __init__(
        self, run: Run, again: Callable[[], Run], broken: Callable[[BaseException], str] | None = None
    ) -> None:
        self.run = run
        self._broken = broken
        self._again = again
        self._quick: Run | None = None
        self._quick_lock = Lock()
        self._quick_group: tuple[int, str] | None = None
        self._answers: dict[Hashable, Any] = {}

    def ask(
        self,
        owner: Widget | Screen[Any],
        group: str,
        call: Callable[[Run], T],
        then: Callable[[T], None],
        *,
        key: Hashable = None,
        failed: Callable[[str], None] | None = None,
        quick: bool = False,
    ) -> Worker[None] | None:
        """Run `call(run)` in a thread and hand its answer to `then` on the UI thread.

        Args:
            owner: the widget that asks; when it is gone the answer is dropped.
            group: kind of question; a new one of the same owner and kind cancels the one before.
            call: what to compute.
            then: what to do with the answer.
            key: where given, the answer is kept, and given at once the next time.
            failed: what to do with an error's text; None: a notification.
            quick: use the engine of quick questions.
        """
        if key is not None and key in self._answers:
            owner.workers.cancel_group(owner, group)
            then(self._answers[key])
            return None
        app = owner.app
        kind = (id(owner), group)
        if quick and self._quick_group == kind and self._quick is not None:
            self._quick.engine.interrupt()

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
                value = self._on_quick(kind, worker, call) if quick else call(self.run)
            except ExplorerError as error:
                if not worker.is_cancelled:
                    app.call_from_thread(fail, worker, str(error))
                return
            except Exception as error:
                if worker.is_cancelled:
                    return  # the engine was closed or interrupted under a question nobody waits for
                if self._broken is None:
                    raise
                # One broken answer must not take the others away.
                app.call_from_thread(fail, worker, self._broken(error))
                return
            if value is not _Stale and not worker.is_cancelled:
                app.call_from_thread(answer, worker, value)

        return owner.run_worker(work, thread=True, group=group, exclusive=True, exit_on_error=True)

    def _on_quick(self, kind: tuple[int, str], worker: Worker[Any], call: Callable[[Run], T]) -> Any:
        import duckdb

        with self._quick_lock:
            if worker.is_cancelled:
                return _Stale
            if self._quick is None:
                self._quick = self._again()
            self._quick_group = kind
            try:
                for attempt in (1, 2):
                    try:
                        return call(self._quick)
                    except duckdb.InterruptException:
                        # Meant for this question when it is stale; else it came a moment late: ask again.
                        if worker.is_cancelled or attempt == 2:
                            return _Stale
            finally:
                self._quick_group = None
        return _Stale

    def close(self) -> None:
        """Stop what is running and free the engines."""
        for run in (self.run, self._quick):
            if run is not None and "engine" in run.__dict__:
                run.engine.interrupt()


class _Stale:
    """The answer to a question nobody waits for any more."""
