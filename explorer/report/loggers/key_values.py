"""What every tracker gets: numbers by name, and the findings as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from explorer.model.saving_text import saving_text

if TYPE_CHECKING:
    from explorer.analysis.run import Run

PREFIX = "neuron_explorer"


def key_values(run: Run) -> dict[str, float]:
    """Numbers of the slowest rank: step time in ms, shares of the step, expected savings by rule in ms."""
    rows = run.summary().rows()
    if not rows:
        return {}
    slowest = max(rows, key=lambda row: row["step_ns"] or 0)
    values = {f"{PREFIX}/step_ms": (slowest["step_ns"] or 0) / 1e6}
    for name in ("compute_share", "exposed_communication_share", "exposed_copy_share", "idle_share"):
        if slowest.get(name) is not None:
            values[f"{PREFIX}/{name}"] = float(slowest[name])
    for finding in run.bottlenecks():
        if not finding.saves_time:
            continue
        key = f"{PREFIX}/saving_ms/{finding.rule}"
        values[key] = values.get(key, 0.0) + finding.saving.expected / 1e6
    return values


def findings_text(run: Run) -> str:
    """The findings as Markdown, worst first."""
    findings = run.bottlenecks()
    if not len(findings):
        return "No rule found anything worth changing."
    lines = []
    for finding in findings:
        place = f" `{finding.lines[0].file}:{finding.lines[0].line}`" if finding.lines else ""
        saves = f"saves {saving_text(finding, trim=True)}. " if finding.saves_time else ""
        lines.append(f"- **{finding.title}**{place} ({finding.severity}): {saves}{finding.advice}")
    return "\n".join(lines)
