"""The steps of a long recording that are replayed in place of all: a replay holds every event of them in memory."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from explorer.analysis.engine import Engine
from explorer.analysis.step_scope import Span, StepScope

MOST_EVENTS = 2_000_000
"""Of a rank that are replayed whole (ours: a replay takes some 250 bytes for each)."""

WINDOW_EVENTS = 1_000_000
"""Of longer recordings as many steps are replayed as hold about this many."""


@dataclass(frozen=True, slots=True)
class ReplayWindow:
    """Neighbouring steps of the scope with their (start_ns, end_ns); none where no few of them stand for all."""

    numbers: tuple[int, ...]
    spans: tuple[Span, ...]
    of: int
    """How many steps the scope has"""

    @property
    def span(self) -> Span:
        """From the start of the first to the end of the last."""
        return self.spans[0][0], self.spans[-1][1]

    @property
    def sentence(self) -> str:
        """What it means for savings."""
        if not self.numbers:
            return "The recording is long and no few of its steps stand for all: nothing was replayed, savings are bounds."
        first, last = self.numbers[0], self.numbers[-1]
        steps = f"step {first}" if first == last else f"steps {first} to {last}"
        stand = "stands" if first == last else "stand"
        return f"The recording is long: savings were replayed on {steps}, which {stand} for all {self.of}; all else is of all."


def replay_window(
    engine: Engine, scope: StepScope, *, most: int = MOST_EVENTS, window: int = WINDOW_EVENTS
) -> ReplayWindow | None:
    """The steps to replay, with about `window` events; None where all are: up to `most` events of the rank.

    Of neighbouring steps those stand best for all whose mean length and number of events are closest to the mean of all; of
    equally good ones those nearest to the middle of the recording.
    """
    if sum(part.rows for part in engine.reader.parts("events", [scope.rank])) <= most:
        return None
    count = len(scope.numbers)
    nothing = ReplayWindow((), (), count)
    if not count or len(scope.spans) != count:
        return nothing
    rows = engine.sql(
        f"""SELECT e.step, count(*) AS events FROM events e
        WHERE e.rank = {scope.rank} AND e.step BETWEEN {scope.numbers[0]} AND {scope.numbers[-1]} GROUP BY e.step ORDER BY e.step"""
    ).arrow()
    step, events = (rows.column(name).to_numpy().astype(np.int64) for name in ("step", "events"))
    # Outliers between the steps in scope are loaded with them.
    up_to = np.append(0, np.cumsum(events))
    before = up_to[np.searchsorted(step, scope.numbers, "left")]
    after = up_to[np.searchsorted(step, scope.numbers, "right")]
    length = np.array([end - start for start, end in scope.spans], float)
    width = min(count, max(1, int(window / max(1.0, (after - before).mean()))))
    first = np.arange(count - width + 1)
    held = after[first + width - 1] - before[first]
    own = np.convolve(after - before, np.ones(width), "valid") / width
    lasts = np.convolve(length, np.ones(width), "valid") / width
    off = np.abs(own / max(1.0, (after - before).mean()) - 1) + np.abs(lasts / max(1.0, length.mean()) - 1)
    # A single step may be as large as a recording that is replayed whole.
    fits = held <= (most if width == 1 else 1.25 * window)
    if not fits.any():
        return nothing
    from_middle = np.abs(2 * first + width - count)
    best = int(first[fits][np.lexsort((first[fits], from_middle[fits], np.round(off[fits], 3)))[0]])
    return ReplayWindow(scope.numbers[best : best + width], scope.spans[best : best + width], count)
