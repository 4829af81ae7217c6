"""Measuring the hand-written accelerator runs: recall and line; there is no program to time."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from benchmarks.planted.device_cases import DeviceCase
from benchmarks.planted.measure import TOP
from explorer import open_run
from tests.analysis.run_builder import RunBuilder


@dataclass(frozen=True)
class DeviceOutcome:
    """`said` is the rule, severity and share of what was found, or of the first finding where the rule was missed."""

    case: DeviceCase
    recalled: bool
    exact_line: bool
    said: str


def measure_device(case: DeviceCase, directory: str) -> DeviceOutcome:
    """Write the run, ask the rules."""
    builder = RunBuilder(Path(directory) / case.name)
    lines = case.build(builder)
    with open_run(builder.write()) as run:
        findings = run.bottlenecks()
    found = next((finding for finding in findings[:TOP] if finding.rule == case.rule), None)
    shown = found or (findings[0] if findings else None)
    exact = found is not None and (not lines or bool(found.lines and found.lines[0].line in lines))
    said = f"{shown.rule} {shown.severity} {shown.saving_share:.1%}" if shown else "nothing"
    return DeviceOutcome(case, found is not None, exact, said)
