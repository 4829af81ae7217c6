"""What if the cause of a finding were faster: predictions on a ladder of speed-ups, by replaying the run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from explorer.analysis.replay_window import MOST_EVENTS, replay_window
from explorer.analysis.step_scope import find_scope
from explorer.analysis.what_if import Edit, Replays, WhatIf
from explorer.model.errors import UsageError

if TYPE_CHECKING:
    from explorer.analysis.run import Run
    from explorer.model.finding import Finding

LADDER: tuple[tuple[float, str], ...] = (
    (1.0, "as it is"),
    (1.25, "1.25× as fast"),
    (1.5, "1.5× as fast"),
    (2.0, "twice as fast"),
    (4.0, "4× as fast"),
    (10.0, "10× as fast"),
    (0.0, "gone"),
)
"""Rungs: the factor (0: it takes no time) and its words."""

_CATEGORIES = {"data_loader_stall": "data", "io_in_step": "io", "gc_pauses": "gc"}
"""Rules whose time is a category of events: what to change where no line of the finding holds the time itself."""


@dataclass(frozen=True)
class FindingWhatIf:
    """The prediction for a finding on one rung; `what` is the line (FILE:LINE) or category that was made faster."""

    finding_id: str
    rung: int
    what: str
    prediction: WhatIf

    @property
    def saving_share(self) -> float:
        before = self.prediction.step_before_ns
        return self.prediction.saving_ns / before if before else 0.0


class FindingReplays:
    """Predictions of one run: its dependency graph is loaded at the first question and kept."""

    def __init__(self, run: Run) -> None:
        self._engine = run.engine
        self._scope = find_scope(run.engine)
        self._window = replay_window(run.engine, self._scope)
        spans = {self._scope.rank: self._window.span} if self._window and self._window.numbers else {}
        self._replays = Replays(run.engine, spans)

    def predict(self, finding: Finding, rung: int) -> FindingWhatIf:
        """The step time with the finding's first line that holds time on a rung of LADDER.

        A long recording is replayed on the steps that stand for all, as for the finding itself. Raises UsageError where neither
        a line nor the category of its rule holds time that a replay could change, and where there are no such steps.
        """
        if self._window and not self._window.numbers:
            raise UsageError(self._window.sentence)
        ranks = [self._scope.rank, *(rank for rank in finding.ranks if self._is_another(rank))]
        for way, value in _targets(finding):
            factor = LADDER[rung][0]
            edit = Edit("speedup", way, value, factor) if factor else Edit("remove", way, value)
            try:
                prediction = self._replays.predict([edit], ranks)
            except UsageError:
                continue  # it selects nothing: try the next
            return FindingWhatIf(
                finding.id, rung, value if way == "line" else f"every {value} event", prediction
            )
        raise UsageError("Nothing of this finding holds time that a replay could change.")

    def _is_another(self, rank: int) -> bool:
        """Whether a rank is not the slowest, and small enough to be replayed whole beside it."""
        if rank == self._scope.rank:
            return False
        return sum(part.rows for part in self._engine.reader.parts("events", [rank])) <= MOST_EVENTS


def _targets(finding: Finding) -> Iterator[tuple[str, str]]:
    for line in finding.lines:
        yield "line", f"{line.file}:{line.line}"
    if finding.rule in _CATEGORIES:
        yield "category", _CATEGORIES[finding.rule]
