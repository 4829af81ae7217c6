"""The findings: what to change, worst first, each with the source around its line and its evidence."""

from __future__ import annotations

from collections.abc import Callable

from explorer.analysis.phrase import duration_text
from explorer.analysis.source_view import CodeFile
from explorer.model.finding import Finding, FindingLine, Findings
from explorer.report.html.markup import Markup, join, section, tag

CONTEXT_LINES = 4


def findings_section(findings: Findings, code_of: Callable[[str], CodeFile | None]) -> Markup:
    """All findings; `code_of` gives a file's text where the run holds it."""
    if not len(findings):
        body = tag("p", "No rule found anything worth changing in this run.", class_="empty")
    else:
        body = join(*(_card(number, finding, code_of) for number, finding in enumerate(findings, 1)))
    note = "Worst first. A saving is what a step would be shorter by, predicted by replaying the run's dependency graph, or at most (a bound)."
    return section("findings", "What to change", body, _not_checked(findings), note=note)


def _card(number: int, finding: Finding, code_of: Callable[[str], CodeFile | None]) -> Markup:
    saving = finding.saving
    basis = "predicted by replay" if saving.basis == "replay" else "at most"
    span = f"{duration_text(saving.low)} to {duration_text(saving.high)}"
    return tag(
        "article",
        tag(
            "h3",
            tag("span", finding.severity, class_=f"severity {finding.severity}"),
            f" {number}. {finding.title}",
        ),
        tag(
            "p",
            tag(
                "b", f"Saves {duration_text(saving.expected)} of {finding.whole} ({finding.saving_share:.1%})"
            ),
            f" — {basis}, {span}; confidence {finding.confidence}.",
        )
        if finding.saves_time
        else tag("p", f"It speaks of no time; confidence {finding.confidence}."),
        *(_excerpt(line, code_of(line.file)) for line in finding.lines[:2]),
        tag("p", tag("b", "Do: "), finding.advice),
        *(tag("p", tag("b", "Seen: "), item.statement) for item in finding.evidence),
        tag("p", tag("b", "But: "), " ".join(finding.caveats)) if finding.caveats else "",
        tag("p", tag("b", "Explains also: "), "; ".join(finding.symptoms)) if finding.symptoms else "",
        tag(
            "details",
            tag("summary", "SQL that reproduces the numbers"),
            *(tag("pre", item.sql, class_="sql") for item in finding.evidence),
        ),
        class_="finding",
        id=f"finding-{number}",
    )


def _excerpt(line: FindingLine, code: CodeFile | None) -> Markup:
    place = tag(
        "div", f"{line.file}:{line.line}", tag("span", f" {line.function}", class_="function"), class_="place"
    )
    near = [entry for entry in code.lines if abs(entry.number - line.line) <= CONTEXT_LINES] if code else []
    if not near:
        return join(place, tag("pre", line.code, class_="code"))
    rows = [
        tag(
            "div",
            tag("span", entry.number, class_="number"),
            tag(
                "span",
                duration_text(entry.costs["cost_ns"] + entry.costs["device_ns"]) if entry.costs else "",
                class_="cost",
            ),
            tag("span", entry.text or " ", class_="source"),
            class_="row here" if entry.number == line.line else "row",
        )
        for entry in near
    ]
    return join(place, tag("div", *rows, class_="code"))


def _not_checked(findings: Findings) -> Markup:
    if not findings.not_checked:
        return Markup("")
    rows = [tag("li", tag("b", item.rule), f": {item.reason}") for item in findings.not_checked]
    return tag("details", tag("summary", f"{len(rows)} rules could not be checked"), tag("ul", *rows))
