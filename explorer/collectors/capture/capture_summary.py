"""What a running capture can say of itself in the loop, at no cost worth naming: steps, step time, what is on disk."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

from explorer.model.quantity import duration_text

if TYPE_CHECKING:
    from explorer.collectors.capture.session import Session


@dataclass(frozen=True, slots=True)
class CaptureSummary:
    """Times are as recorded, of the last complete steps (1,000 at most); `events` and `windows` are those on disk."""

    directory: str | None
    steps: int
    median_step_ns: int
    shortest_step_ns: int
    longest_step_ns: int
    events: int
    windows: int
    recording: bool

    def __str__(self) -> str:
        if not self.steps:
            return "no complete step recorded yet"
        span = f"{duration_text(self.shortest_step_ns)} to {duration_text(self.longest_step_ns)}"
        return (
            f"{self.steps} steps, median {duration_text(self.median_step_ns)} ({span}); {self.events:,} events in"
            f" {self.windows} windows at {self.directory}"
        )


def capture_summary(session: Session | None) -> CaptureSummary:
    """The state of a capture; of one that was refused or has not begun: no steps."""
    if session is None:
        return CaptureSummary(None, 0, 0, 0, 0, 0, 0, False)
    times = session.steps.complete_ns
    return CaptureSummary(
        directory=session.directory,
        steps=session.steps.complete,
        median_step_ns=round(median(times)) if times else 0,
        shortest_step_ns=min(times, default=0),
        longest_step_ns=max(times, default=0),
        events=session.windows.plan.events,
        windows=len(session.windows.rows),
        recording=session.windows.recording,
    )
