"""The report as Markdown, for pull requests and chats."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from explorer.analysis.key_figures import overview
from explorer.analysis.phrase import duration_text, place
from explorer.analysis.run_facts import run_facts
from explorer.analysis.unchecked import unchecked
from explorer.model.saving_text import saving_text
from explorer.report.code_in_text import pieces

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
    out += [f"> {_sentence(doubt)}\n" for doubt in findings.doubts]
    if not len(findings):
        out.append("No rule found anything worth changing.")
    for number, finding in enumerate(findings, 1):
        saves = f": saves {saving_text(finding, trim=True)}" if finding.saves_time else ""
        out.append(f"{number}. **{_sentence(finding.title)}** ({finding.severity}){saves}.")
        for line in finding.lines[:1]:
            out.append(
                f"   - Line: {code_span(f'{line.file}:{line.line}')} {code_span(line.code or line.function)}"
            )
        out.append(f"   - Do: {_sentence(finding.advice)}")
        out += [f"   - But: {_sentence(caveat)}" for caveat in findings.own_caveats(finding)]
    if findings.not_checked:
        out += ["", "Not checked:", ""]
        out += [f"- {_sentence(group.sentence)}" for group in unchecked(findings.not_checked)]
    rows = run.lines().rows()[:MOST_LINES]
    if rows:
        out += ["", "### Costliest lines", "", *_line_table(rows)]
    return "\n".join(out) + "\n"


def _line_table(rows: list[dict[str, Any]]) -> list[str]:
    """Place, code and host time of each line, and its device time where there is any."""
    times = ["cost_ns", *(["device_ns"] if any(row["device_ns"] for row in rows) else [])]
    heads = {"cost_ns": "host", "device_ns": "device"}
    return [
        f"| line | code | {' | '.join(heads[name] for name in times)} |",
        f"|---|---|{'---:|' * len(times)}",
        *(
            f"| {code_span(place(row) or '', in_table=True)} | {code_span(row['code'] or row['function'] or '', in_table=True)} | "
            f"{' | '.join(duration_text(row[name]) for name in times)} |"
            for row in rows
        ),
    ]


def _plain(text: object) -> str:
    """Text that Markdown shows as it is, on one line."""
    return _escaped(" ".join(str(text).split()))


def _sentence(text: str) -> str:
    """A sentence whose code stands in code spans, on one line."""
    whole = " ".join(text.split())
    return "".join(code_span(piece) if is_code else _escaped(piece) for piece, is_code in pieces(whole))


def _escaped(piece: str) -> str:
    return "".join(f"\\{mark}" if mark in "\\`*_[]<>|#" else mark for mark in piece)


def code_span(text: str, *, in_table: bool = False) -> str:
    """Text as code, to the letter: Markdown's fence is longer than any run of backquotes inside. Empty for no text."""
    shown = " ".join(text.split())
    if not shown:
        return ""
    if in_table:
        # A table's cell ends at a bar even in code; only there a backslash before it is taken off again.
        shown = shown.replace("|", "\\|")
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", shown)), default=0))
    space = " " if shown.startswith("`") or shown.endswith("`") else ""
    return f"{fence}{space}{shown}{space}{fence}"
