"""Hand-written accelerator runs: the planted rule comes first, at its line, and its evidence can be checked by anyone."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.planted.device_cases import CASES, DeviceCase
from explorer.analysis.findings import find
from explorer.analysis.run import open_run
from tests.analysis.evidence import check_evidence
from tests.analysis.run_builder import RunBuilder


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_planted_fault_is_named(case: DeviceCase, tmp_path: Path) -> None:
    builder = RunBuilder(tmp_path / "run")
    lines = case.build(builder)
    run = open_run(builder.write())
    findings = find(run)
    assert [item for item in findings.not_checked if "failed" in item.reason] == []
    assert findings, "nothing found"
    ranked = [(finding.rule, finding.title, round(finding.saving_share, 3)) for finding in findings]
    found = next((finding for finding in findings[:3] if finding.rule == case.rule), None)
    assert found is not None, ranked
    if lines:
        assert found.lines[0].line in lines
    assert sum(finding.saving.expected for finding in findings) <= findings.step_ns
    check_evidence(run, findings)
