"""When to close a window: about so many events by the measured rate, whole steps only, until the run's budget is spent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

FIRST_STEPS = 2
"""Steps of the first window: long enough to measure the rate, short enough never to be large."""

Decision = Literal["go_on", "cut", "end"]


class WindowPlan:
    """Decides at every step end. With a schedule, the schedule decides; else the event rate does."""

    def __init__(
        self, window_events: int, max_events: int, schedule: Callable[[int], Any] | None = None
    ) -> None:
        self.window_events = window_events
        self.max_events = max_events
        self.schedule = schedule
        self.events = 0
        self.windows = 0
        self.spent = False
        self._steps_wanted = FIRST_STEPS
        self._steps = 0

    def records(self, step: int) -> bool:
        """Whether this step is to be recorded."""
        if self.spent:
            return False
        return self.schedule is None or _name(self.schedule(step)) in ("RECORD", "RECORD_AND_SAVE")

    def warms(self, step: int) -> bool:
        """Whether the profiler should already run (and its rows be dropped) in this step."""
        return not self.spent and self.schedule is not None and _name(self.schedule(step)) == "WARMUP"

    def step_ended(self, step: int) -> Decision:
        """After a recorded step."""
        self._steps += 1
        if self.schedule is not None:
            if _name(self.schedule(step)) == "RECORD_AND_SAVE" or not self.records(step + 1):
                return "cut"
            return "go_on"
        return "cut" if self._steps >= self._steps_wanted else "go_on"

    def window_closed(self, events: int) -> None:
        """Learn the rate of events per step from the window that was just read."""
        self.windows += 1
        self.events += events
        if self._steps and events:
            per_step = max(1.0, events / self._steps)
            left = max(0, self.max_events - self.events)
            self._steps_wanted = max(1, int(min(self.window_events, left) // per_step))
        self._steps = 0
        if self.events >= self.max_events:
            self.spent = True


def _name(action: Any) -> str:
    return str(getattr(action, "name", action))
