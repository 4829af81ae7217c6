"""Questions to the run, answered off the UI thread: a newer question of the same kind cancels the older one."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

from textual.widget import Widget
from textual.worker import Worker, get_current_worker

from explorer.model.errors import ExplorerError
from explorer.tui.lane import Lane, StaleError

if TYPE_CHECKING:
    from textual.screen import Screen

    from explorer.analysis.findings import Told
    from explorer.analysis.run import Run
    from explorer.model.finding import Findings

T = TypeVar("T")
LaneName = Literal["main", "quick", "long", "sql"]


class Finder(Protocol):
    """Looks for bottlenecks."""

    def __call__(self, run: Run, told: Told | None = None) -> Findings:
        """The findings of a run. `told` hears in that thread how many rules were asked, of how many, with how many findings."""

    def stop(self, run: Run) -> None:
        """Give up looking."""


class FindHere:
    """Looks for bottlenecks in this process."""

    def __call__(self, run: Run, told: Told | None = None) -> Findings:
        """The findings of a run."""
        return run.bottlenecks()

    def stop(self, run: Run) -> None:
        """Give up looking."""
        _interrupt(run)


class Data:
    """The open run, with the answers already given.

    Screens ask with `ask`; the call runs in a worker thread with a run as its argument, and `then` runs on the UI
    thread with the answer. Calls are methods of Run or functions of explorer.analysis: no screen holds SQL.

    An engine answers one question at a time, so there are several: `main` for what screens show, `quick` for details
    under the cursor, `long` for looking for bottlenecks, `sql` for statements of the user. A
    stale question is interrupted in each of them.

    Args:
        run: the open run.
        again: opens it once more, for further engines.
        find: looks for bottlenecks.
        broken: told of an unexpected error (in the worker thread), returns what to tell the user; None: the error ends
            the app, as tests want it.
        told: hears how far looking for bottlenecks is (in the worker thread).
    """

    def __init__(
        self,
        run: Run,
        again: Callable[[], Run],
        find: Finder,
        broken: Callable[[BaseException], str] | None = None,
        told: Told | None = None,
    ) -> None:
        self.run = run
        self._find = partial(find, told=told)
        self._broken = broken
        self._answers: dict[Hashable, Any] = {}
        self._lanes: dict[LaneName, Lane] = {
            "main": Lane(lambda: run, _interrupt),
            "quick": Lane(again, _interrupt),
            "long": Lane(again, find.stop),
            "sql": Lane(lambda: run, lambda run: run.cancel_sql()),
        }

    def ask(
        self,
        owner: Widget | Screen[Any],
        group: str,
        call: Callable[[Run], T],
        then: Callable[[T], None],
        *,
        key: Hashable = None,
        failed: Callable[[str], None] | None = None,
        lane: LaneName = "main",
    ) -> None:
        """Run `call(run)` in a thread and hand its answer to `then` on the UI thread.

        Args:
            owner: the widget that asks; when it is gone the answer is dropped.
            group: kind of question; a new one of the same owner and kind cancels the one before.
            call: what to compute.
            then: what to do with the answer.
            key: where given, the answer is kept, and given at once the next time.
            failed: what to do with an error's text; None: a notification.
            lane: the engine to use.
        """
        self.cancel(owner, group, lane)
        if key is not None and key in self._answers:
            then(self._answers[key])
            return
        app = owner.app

        def waits(worker: Worker[None]) -> bool:
            # An app that ends takes the widgets out of a screen before the screen itself.
            return not worker.is_cancelled and owner.is_attached and app.is_running

        def answer(worker: Worker[None], value: T) -> None:
            if waits(worker):
                then(value)

        def fail(worker: Worker[None], text: str) -> None:
            if not waits(worker):
                return
            if failed is not None:
                failed(text)
            else:
                app.notify(text, severity="error", markup=False)

        def known(run: Run) -> T:
            # Another screen may have asked the same meanwhile.
            return self._answers[key] if key is not None and key in self._answers else call(run)

        def work() -> None:
            worker = get_current_worker()
            try:
                value = self._lanes[lane].answer((id(owner), group), known, lambda: worker.is_cancelled)
            except StaleError:
                return
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
            if key is not None:
                self._answers[key] = value
            if not worker.is_cancelled:
                app.call_from_thread(answer, worker, value)

        owner.run_worker(work, thread=True, group=group, exclusive=True, exit_on_error=True)

    def ask_findings(
        self, owner: Screen[Any], then: Callable[[Findings], None], failed: Callable[[str], None]
    ) -> None:
        """Ask for the bottlenecks of the run."""
        self.ask(owner, "findings", self._find, then, key="findings", failed=failed, lane="long")

    def cancel(self, owner: Widget | Screen[Any], group: str, lane: LaneName = "main") -> None:
        """Nobody waits for this question any more: do not begin it, or stop it."""
        owner.workers.cancel_group(owner, group)
        self._lanes[lane].drop((id(owner), group))

    def close(self) -> None:
        """Stop what is running."""
        for lane in self._lanes.values():
            lane.stop()


def _interrupt(run: Run) -> None:
    if "engine" in run.__dict__:
        run.engine.interrupt()
