"""Answers of the analysis layer as rows of the tables on screen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from explorer.model.finding import Finding, Findings

MARKS = {"high": "●", "medium": "◐", "low": "○"}


def finding_rows(findings: Findings) -> list[dict[str, Any]]:
    """One row per finding, worst first."""
    return [_finding_row(finding) for finding in findings]


def _finding_row(finding: Finding) -> dict[str, Any]:
    line = finding.lines[0] if finding.lines else None
    return {
        "id": finding.id,
        "mark": MARKS.get(finding.severity, "○"),
        "severity": finding.severity,
        "title": finding.title,
        "where": f"{line.file}:{line.line}" if line else "",
        "site_id": line.site_id if line else None,
        "file": line.file if line else None,
        "line": line.line if line else None,
        "saving_ns": finding.saving.expected if finding.saves_time else None,
        "saving_share": finding.saving_share if finding.saves_time else None,
        "saving_share_bar": finding.saving_share if finding.saves_time else None,
        "advice": finding.advice,
    }
