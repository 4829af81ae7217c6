"""A finding: one bottleneck with its line, evidence, advice and expected saving. The contract of `bottlenecks --json`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, overload

FINDINGS_SCHEMA = "neuron-explorer/findings/1"

HIGH_SHARE = 0.10
MEDIUM_SHARE = 0.03


def severity_of(share: float) -> str:
    """high at 10 % of the step or more, medium at 3 %, low below."""
    if share >= HIGH_SHARE:
        return "high"
    return "medium" if share >= MEDIUM_SHARE else "low"


@dataclass(frozen=True, slots=True)
class FindingLine:
    """A source line that causes a finding, with its time per step."""

    site_id: int
    file: str
    line: int
    function: str
    code: str
    time_ns: int
    share: float


@dataclass(frozen=True, slots=True)
class Evidence:
    """A measured statement, the SQL that reproduces its numbers, and some of the events ('rank:event_id') behind it."""

    statement: str
    sql: str
    events: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Saving:
    """Predicted saving per step in nanoseconds; `basis` is 'replay', 'bound', or 'none' where a finding speaks of no time."""

    low: int
    expected: int
    high: int
    basis: str = "bound"


@dataclass(frozen=True, slots=True)
class Finding:
    """One bottleneck. Times are per step (the median complete step of the slowest rank)."""

    id: str
    rule: str
    title: str
    severity: str
    confidence: str
    saving: Saving
    saving_share: float
    lines: tuple[FindingLine, ...]
    evidence: tuple[Evidence, ...]
    advice: str
    ranks: tuple[int, ...] = (0,)
    steps: tuple[int, ...] = ()
    caveats: tuple[str, ...] = ()
    symptoms: tuple[str, ...] = ()

    @property
    def saves_time(self) -> bool:
        """Whether it speaks of time at all; else of errors, warnings or doubts, and there is nothing to save."""
        return self.saving.basis != "none"

    @property
    def whole(self) -> str:
        """What the saving is a share of."""
        return "each step" if self.steps else "the recording"

    def to_dict(self) -> dict[str, Any]:
        """The JSON form of DESIGN's contract."""
        saving = {"low": self.saving.low, "expected": self.saving.expected, "high": self.saving.high}
        return {
            "id": self.id,
            "rule": self.rule,
            "title": self.title,
            "severity": self.severity,
            "confidence": self.confidence,
            "saving_ns": saving,
            "saving_share": round(self.saving_share, 6),
            "saving_basis": self.saving.basis,
            "ranks": list(self.ranks),
            "steps": list(self.steps),
            "lines": [asdict(line) for line in self.lines],
            "evidence": [{**asdict(item), "events": list(item.events)} for item in self.evidence],
            "advice": self.advice,
            "caveats": list(self.caveats),
            "symptoms": list(self.symptoms),
        }


@dataclass(frozen=True, slots=True)
class NotChecked:
    """A rule whose inputs the run does not hold, and why."""

    rule: str
    reason: str


@dataclass(frozen=True, slots=True)
class Findings(Sequence[Finding]):
    """All findings of a run, worst first, with what could not be checked and the run's health."""

    run: str
    step_ns: int
    steps: int
    ranks: int
    findings: tuple[Finding, ...]
    not_checked: tuple[NotChecked, ...] = ()
    health: tuple[dict[str, Any], ...] = field(default=())
    recorded_step_ns: int = 0
    """Mean step in scope as recorded, with recording and interruptions: what numbers of evidence are parts of"""
    doubts: tuple[str, ...] = ()
    """Caveats that come from the run and not from a finding: said once; in JSON they stand with each finding they touch"""

    def __len__(self) -> int:
        return len(self.findings)

    @overload
    def __getitem__(self, index: int) -> Finding: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Finding, ...]: ...
    def __getitem__(self, index: int | slice) -> Finding | tuple[Finding, ...]:
        return self.findings[index]

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.findings)

    def own_caveats(self, finding: Finding) -> tuple[str, ...]:
        """A finding's caveats but for the `doubts` of all."""
        return tuple(caveat for caveat in finding.caveats if caveat not in self.doubts)

    def to_dict(self) -> dict[str, Any]:
        """The whole document of `bottlenecks --json`."""
        return {
            "schema": FINDINGS_SCHEMA,
            "run": self.run,
            "step_ns": self.step_ns,
            "steps": self.steps,
            "ranks": self.ranks,
            "recorded_step_ns": self.recorded_step_ns,
            "health": list(self.health),
            "findings": [finding.to_dict() for finding in self.findings],
            "not_checked": [asdict(item) for item in self.not_checked],
        }

    def to_json(self, indent: int | None = None) -> str:
        """`to_dict()` as JSON text."""
        return json.dumps(self.to_dict(), ensure_ascii=False, indent=indent)
