"""Steps as the program ends them, with the pauses of the capture kept out."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

MAX_UNRECORDED_STEPS = 100_000


@dataclass(slots=True)
class Step:
    """One step. `window` is None where nothing was recorded."""

    number: int
    start_ns: int
    end_ns: int = 0
    complete: bool = False
    window: int | None = None
    pause_ns: int = 0
    broken: bool = False
    """Recorded in part only"""


class Steps:
    """The open step and those not yet written."""

    def __init__(self) -> None:
        self.open: Step | None = None
        self.done: list[Step] = []
        self.number = 0
        self.recorded = 0
        self.unrecorded = 0
        self.complete = 0
        self.complete_ns: deque[int] = deque(maxlen=1000)
        """Durations of the last complete steps, pauses left out"""
        self.marked_by: str | None = None
        self._first = True

    def begin(self, now_ns: int, window: int | None) -> None:
        """A step starts now, recorded in `window`."""
        self.open = Step(self.number, now_ns, window=window)

    def end(self, now_ns: int, *, complete: bool = True) -> Step | None:
        """The open step ends now; returns it."""
        step = self.open
        if step is None:
            return None
        step.end_ns = now_ns
        step.complete = complete and step.window is not None and not step.broken
        if step.complete:
            self.complete += 1
            self.complete_ns.append(max(0, now_ns - step.start_ns - step.pause_ns))
        self.open = None
        self.number += 1
        if step.window is not None:
            self.recorded += 1
            self.done.append(step)
        else:
            self.unrecorded += 1
            if self.unrecorded <= MAX_UNRECORDED_STEPS:
                self.done.append(step)
        return step

    def drop_empty_tail(self, window_start_ns: int, last_event_ns: int) -> bool:
        """Forget the last step where it is cut off and nothing happened in it: what follows the last step() call."""
        tail = self.done[-1] if self.done else None
        if tail is not None and not tail.complete and tail.start_ns >= max(window_start_ns, last_event_ns):
            self.done.pop()
            return True
        return False

    def intervals(self, end_ns: int) -> list[Step]:
        """Steps of the window being closed, the open one included as if it ended now."""
        steps = list(self.done)
        if self.open is not None:
            steps.append(Step(self.open.number, self.open.start_ns, end_ns, False, self.open.window))
        return steps

    def rows(self) -> list[dict[str, Any]]:
        """Rows of the table `steps` for everything ended since the last call."""
        done, self.done = self.done, []
        return [
            {
                "step": step.number,
                "start_ns": step.start_ns,
                "duration_ns": max(0, step.end_ns - step.start_ns - step.pause_ns),
                "complete": step.complete,
                "window": step.window,
                "pause_ns": step.pause_ns,
            }
            for step in done
        ]


def step_of(times: npt.NDArray[np.int64], steps: list[Step]) -> npt.NDArray[np.int64]:
    """Step number at each time, -1 between steps."""
    if not steps or not len(times):
        return np.full(len(times), -1, dtype=np.int64)
    starts = np.array([step.start_ns for step in steps], dtype=np.int64)
    ends = np.array([step.end_ns for step in steps], dtype=np.int64)
    numbers = np.array([step.number for step in steps], dtype=np.int64)
    at = np.searchsorted(starts, times, "right") - 1
    inside = (at >= 0) & (times < ends[np.maximum(at, 0)])
    return np.where(inside, numbers[np.maximum(at, 0)], -1)
