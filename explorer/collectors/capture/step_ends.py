"""Where a step of the program ends: at `step()`, else at the leading optimizer's step, else where a batch is wanted."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import FrameType

from explorer.collectors.capture.compile_pauses import CompilePauses
from explorer.collectors.capture.pinned_lines import PinnedLines
from explorer.collectors.capture.step_marks import LoaderMarks, OptimizerMarks
from explorer.collectors.capture.steps import Steps
from explorer.collectors.capture.windows import Windows

LOADER_MARKS_AFTER = 16
"""Batches fetched without an optimizer step before batches count as steps."""


class StepEnds:
    """Ends steps, and has windows cut there. Rests the line recorder meanwhile, where library code that calls no code of
    the program runs (the optimizer, the compiler)."""

    def __init__(
        self, windows: Windows, steps: Steps, pins: PinnedLines, is_ours: Callable[[], bool]
    ) -> None:
        """`is_ours`: whether the capture runs, and on the calling thread."""
        self._windows = windows
        self._steps = steps
        self._pins = pins
        self._is_ours = is_ours
        self._optimizers = OptimizerMarks(self._optimizer_stepped, self._rest, self._rest_is_over)
        self._loaders = LoaderMarks(self._batch_begins, self._batch_came)
        self._compiles = CompilePauses(self._rest, self._rest_is_over)
        self._first_mark: int | None = None
        self._batches = 0
        self._pinned: int | None = None
        self._batch_pinned: int | None = None
        self._cut_pending_in: int | None = None
        """Number of the window that is to be cut at the program's next line."""

    def start(self, *, lines: bool) -> None:
        self._optimizers.start()
        self._loaders.start()
        if lines:
            self._compiles.start()

    def stop(self) -> None:
        self._compiles.stop()
        self._optimizers.stop()
        self._loaders.stop()

    def step(self, frame: FrameType | None) -> None:
        """The program says that a step ends here."""
        windows, steps = self._windows, self._steps
        steps.marked_by = "step()"
        self._cut_pending_in = None
        self._recover(frame)
        now = time.time_ns()
        if windows.recording and windows.plan.step_ended(steps.number) == "cut":
            windows.close_and_reopen(now, frame)
        elif not windows.recording and windows.plan.records(steps.number + 1):
            windows.open_at_step_end(frame)
        else:
            self._next(now)
        self._take_up(frame)

    def _optimizer_stepped(self) -> None:
        """Without `step()` calls, the leading optimizer's steps end the program's."""
        steps = self._steps
        if not self._is_ours() or steps.marked_by == "step()":
            return
        now = time.time_ns()
        if steps.marked_by == "DataLoader":
            steps.marked_by = "optimizer.step()"
        if steps.marked_by is None:
            # One step alone may be followed by step() calls that know better; the second settles it.
            first, self._first_mark = self._first_mark, now
            if first is None:
                return
            steps.marked_by = "optimizer.step()"
            # What came before the first mark holds the program's set-up as well.
            self._windows.plan.step_ended(0)
            self._next(first, complete=False)
        self._mark(now)

    def _batch_begins(self) -> None:
        self._batch_wanted()
        if self._windows.recording and self._is_ours():
            self._batch_pinned = self._pins.begin(calls_back=True)

    def _batch_wanted(self) -> None:
        """A program that fetches batches and never steps an optimizer: an iteration ends where the next batch is wanted."""
        steps = self._steps
        if not self._is_ours():
            return
        if steps.marked_by not in (None, "DataLoader") or self._first_mark is not None:
            return
        self._batches += 1
        if steps.marked_by is None:
            if self._batches < LOADER_MARKS_AFTER:
                return
            steps.marked_by = "DataLoader"
            self._next(time.time_ns(), complete=False)
        else:
            self._mark(time.time_ns())

    def _batch_came(self) -> None:
        """Hot code of a dataset may have switched line recording off: what comes after the batch has its lines again."""
        recorder = self._windows.recorder
        if recorder is not None and self._windows.recording and self._is_ours():
            pinned, self._batch_pinned = self._batch_pinned, None
            self._pins.end(pinned)
            recorder.take_up(sys._getframe())

    def _mark(self, now: int) -> None:
        """A step ends, seen from inside a call of the library."""
        windows = self._windows
        number = self._steps.number
        pending = self._cut_pending_in is not None and self._cut_pending_in == windows.open_number
        if windows.recording and not pending and windows.plan.step_ended(number) == "cut":
            if windows.recorder is None:
                # Nothing tells when the next line comes: the optimizer's own range is cut short.
                windows.close_and_reopen(now, sys._getframe())
                return
            # The profiler must not stop inside the optimizer's own range: wait for the program's next line.
            self._cut_pending_in = windows.number
            if windows.recorder.at_next_line(sys._getframe(), self._cut):
                return
            # No line will come (tracing was switched off in a hot call): the next step asks again.
            self._cut_pending_in = None
        elif pending:
            return
        elif not windows.recording and windows.plan.records(number + 1):
            windows.open_at_step_end(sys._getframe())
            return
        self._next(now)
        self._take_up(sys._getframe())

    def _cut(self) -> None:
        pending, self._cut_pending_in = self._cut_pending_in, None
        if pending is not None and pending == self._windows.open_number and self._windows.running:
            self._windows.close_and_reopen(time.time_ns(), sys._getframe(2))

    def _next(self, now: int, *, complete: bool = True) -> None:
        """The open step ends and the next one begins, in the same window."""
        self._steps.end(now, complete=complete)
        self._steps.begin(now, self._windows.open_number)

    def _take_up(self, frame: FrameType | None) -> None:
        if self._windows.recorder is not None and self._windows.recording:
            self._windows.recorder.take_up(frame, at_step=True)

    # -- rests

    def _rest(self) -> None:
        recorder = self._windows.recorder
        if self._windows.recording and recorder is not None and self._is_ours():
            self._recover(sys._getframe())
            recorder.take_up(sys._getframe())
            self._pinned = self._pins.begin()

    def _recover(self, frame: FrameType | None) -> None:
        """An optimizer step that raised never came to its end: frames came and went unseen since."""
        pinned, self._pinned = self._pinned, None
        if pinned is not None and self._windows.recorder is not None and self._windows.recording:
            self._windows.recorder.resume(frame)

    def _rest_is_over(self) -> None:
        if self._is_ours():
            pinned, self._pinned = self._pinned, None
            self._pins.end(pinned)
