"""Measuring one case: record it, ask the rules, and time it slow and fixed without a profiler."""

from __future__ import annotations

import gc
import os
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.planted.cases import Case
from explorer import neuron_profile, open_run
from explorer.model.finding import Finding, Findings

STEPS = 10
ROUNDS = 5
RECORDS = 3
TOP = 3


class _Clock:
    """Stands where the profiler's step() would: the times between calls."""

    def __init__(self, now: Callable[[], int]) -> None:
        self.now = now
        self.times = [now()]

    def step(self) -> None:
        self.times.append(self.now())

    def steps(self) -> list[int]:
        # The first two steps hold set-up and first calls.
        return [after - before for before, after in zip(self.times[2:], self.times[3:])]


@dataclass(frozen=True)
class Outcome:
    """`measured_ns`: slow step minus fixed step, un-profiled; None for clean cases."""

    case: Case
    findings: Findings
    found: Finding | None
    position: int | None
    exact_line: bool
    slow_ns: float
    measured_ns: float | None
    record_s: float
    analyse_s: float

    @property
    def recalled(self) -> bool:
        return self.found is not None and self.position is not None and self.position <= TOP

    @property
    def false_alarm(self) -> bool:
        return self.case.is_clean and any(finding.severity != "low" for finding in self.findings)

    @property
    def predicted_share(self) -> float | None:
        return self.found.saving_share if self.found else None

    @property
    def measured_share(self) -> float | None:
        return None if self.measured_ns is None else self.measured_ns / self.slow_ns

    @property
    def prediction_holds(self) -> bool:
        """Whether the predicted share is within 25 % of the measured one."""
        if self.predicted_share is None or not self.measured_share:
            return False
        return abs(self.predicted_share - self.measured_share) <= 0.25 * abs(self.measured_share)


def measure(
    case: Case, directory: str, rounds: int = ROUNDS, records: int = RECORDS, clock: str = "wall"
) -> Outcome:
    """Record, keep the quietest recording, then time slow and fixed alternately and compare the lower deciles of all steps."""
    gc.collect()
    recordings = []
    for number in range(records):
        began = time.perf_counter()
        with neuron_profile(os.path.join(directory, f"{case.name}-{number}")) as profile:
            _run(case, True, STEPS, profile.step)
        recorded = time.perf_counter()
        with open_run(profile.directory) as run:
            findings = run.bottlenecks()
        recordings.append(
            (findings.step_ns, number, findings, recorded - began, time.perf_counter() - recorded)
        )
    # The quietest recording: the others were interrupted more by the rest of the machine.
    _, _, findings, record_s, analyse_s = min(recordings, key=lambda item: item[:2])
    found, position, exact = _match(case, findings)
    slow: list[int] = []
    fixed: list[int] = []
    for _ in range(rounds):
        slow += _time(case, True, clock)
        if not case.is_clean:
            fixed += _time(case, False, clock)
    slow_ns = _typical(slow)
    return Outcome(
        case=case,
        findings=findings,
        found=found,
        position=position,
        exact_line=exact,
        slow_ns=slow_ns,
        measured_ns=slow_ns - _typical(fixed) if fixed else None,
        record_s=record_s,
        analyse_s=analyse_s,
    )


def _typical(times: list[int]) -> float:
    """The lower decile: other programs on the machine only ever add time."""
    return statistics.quantiles(times, n=10)[0]


def _run(case: Case, slow: bool, steps: int, step: Callable[[], None]) -> None:
    if case.is_clean:
        case.run(steps, step)
    else:
        case.run(slow, steps, step)


def _time(case: Case, slow: bool, clock_name: str) -> list[int]:
    # Processor time of the thread is what the step would take on a machine of its own; sleeping and other threads need
    # the wall clock.
    clock = _Clock(
        time.perf_counter_ns if clock_name == "wall" or case.needs_wall_clock else time.thread_time_ns
    )
    _run(case, slow, STEPS, clock.step)
    return clock.steps()


def _match(case: Case, findings: Findings) -> tuple[Finding | None, int | None, bool]:
    """The finding that names the fault: of the right rule, with the right line before one without, the higher before the lower."""
    named = [
        (position, finding) for position, finding in enumerate(findings, 1) if finding.rule in case.kinds
    ]
    for position, finding in named:
        if position <= TOP and _has_line(case, finding):
            return finding, position, True
    if named:
        return named[0][1], named[0][0], False
    return None, None, False


def _has_line(case: Case, finding: Finding) -> bool:
    first = finding.lines[0] if finding.lines else None
    return (
        first is not None
        and first.line in case.lines
        and os.path.basename(first.file) == os.path.basename(case.file)
    )
