"""The report as Markdown, for pull requests and chats."""

from __future__ import annotations

from typing import TYPE_CHECKING

from explorer.analysis.key_figures import overview
from explorer.analysis.phrase import duration_text
from explorer.analysis.run_facts import run_facts

if TYPE_CHECKING:
    from explorer.analysis.run import Run

MOST_LINES = 10


def markdown_report(run: Run) -> str:
    """Key figures, where the step goes, findings, and the costliest lines."""
    facts, story, findings = run_facts(run), overview(run), run.bottlenecks()
    out = [f"## {_plain(facts.name)}", "", _plain(facts.sentence), ""]
    out += [f"- **{_plain(f.title)}**: {_plain(f.value)} · {_plain(f.sentence)}" for f in story.figures]
    if story.worst:
        out += ["", "| part of a step | mean time | share |", "|---|---:|---:|"]
        out += [
            f"| {_plain(p.label)} | {duration_text(p.duration_ns)} | {p.share:.1%} |"
            for p in story.worst.parts
        ]
    out += ["", "### What to change", ""]
    if not len(findings):
        out.append("No rule found anything worth changing.")
    for number, finding in enumerate(findings, 1):
        bound = "" if finding.saving.basis == "replay" else "up to "
        saves = (
            f": saves {bound}{duration_text(finding.saving.expected)} of {finding.whole} ({finding.saving_share:.1%})"
            if finding.saves_time
            else ""
        )
        out.append(f"{number}. **{_plain(finding.title)}** ({finding.severity}){saves}.")
        for line in finding.lines[:1]:
            out.append(f"   `{_code(line.file)}:{line.line}` `{_code(line.code)}`")
        out.append(f"   {_plain(finding.advice)}")
    rows = run.lines().rows()[:MOST_LINES]
    if rows:
        out += ["", "### Costliest lines", "", "| line | code | host | device |", "|---|---|---:|---:|"]
        out += [
            f"| {_plain(row['file'])}:{row['line']} | `{_code(row['code'] or '')}` | {duration_text(row['cost_ns'])} | {duration_text(row['device_ns'])} |"
            for row in rows
        ]
    return "\n".join(out) + "\n"


def _plain(text: object) -> str:
    """Text that Markdown shows as it is, on one line."""
    shown = " ".join(str(text).split())
    for mark in "\\`*_[]<>|#":
        shown = shown.replace(mark, f"\\{mark}")
    return shown


def _code(text: str) -> str:
    """Text between backticks, inside a table."""
    return " ".join(text.split()).replace("`", "'").replace("|", "\\|")
