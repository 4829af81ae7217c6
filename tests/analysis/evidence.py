"""Checking findings' evidence: every statement's numbers come out of its SQL again, trusted and in the sandbox."""

from __future__ import annotations

from typing import Any

from explorer.analysis.phrase import value_text
from explorer.model.finding import Findings


def check_evidence(run: Any, findings: Findings) -> None:
    """Assert for each finding that its SQL returns one row, the same both ways, and that the statement shows its values."""
    for finding in findings:
        assert finding.evidence, finding.rule
        for item in finding.evidence:
            trusted = run.engine.sql(item.sql).rows()
            assert len(trusted) == 1, (finding.rule, item.sql)
            assert run.sql(item.sql).rows() == trusted, finding.rule
            for name, value in trusted[0].items():
                shown = value_text(name, _plain(value))
                assert shown in item.statement, (finding.rule, name, shown, item.statement)


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, str | bool | int) else float(value)
