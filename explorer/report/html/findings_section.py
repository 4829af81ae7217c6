"""The findings: what to change, worst first, each with the source around its line and its evidence."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from explorer.analysis.source_view import CodeFile
from explorer.analysis.unchecked import unchecked
from explorer.model.finding import Finding, FindingLine, Findings
from explorer.model.quantity import duration_text
from explorer.model.saving_text import saving_text
from explorer.report.html.markup import Markup, join, section, tag, with_code

CONTEXT_LINES = 4


def findings_section(findings: Findings, code_of: Callable[[str], CodeFile | None]) -> Markup:
    """All findings; `code_of` gives a file's text where the run holds it."""
    if not len(findings):
        body = tag("p", "No rule found anything worth changing in this run.", class_="empty")
    else:
        body = join(
            *(
                _card(number, finding, findings.own_caveats(finding), code_of)
                for number, finding in enumerate(findings, 1)
            )
        )
    note = "Worst first. A saving is what a step would be shorter by: predicted by replaying the run's dependency graph, or a bound, the most it can be."
    doubts = [tag("p", tag("b", "But: "), with_code(doubt), class_="doubt") for doubt in findings.doubts]
    return section("findings", "What to change", *doubts, body, _not_checked(findings), note=note)


def _card(
    number: int, finding: Finding, caveats: Sequence[str], code_of: Callable[[str], CodeFile | None]
) -> Markup:
    basis = "predicted by replay" if finding.saving.basis == "replay" else "a bound, not a prediction"
    return tag(
        "article",
        tag(
            "h3",
            tag("span", finding.severity, class_=f"severity {finding.severity}"),
            f" {number}. {finding.title}",
        ),
        tag(
            "p",
            tag("b", f"Saves {saving_text(finding, trim=True)}"),
            f" — {basis}; confidence {finding.confidence}.",
        )
        if finding.saves_time
        else tag("p", f"It speaks of no time; confidence {finding.confidence}."),
        *(_excerpt(near, code_of(near[0].file)) for near in _together(finding.lines[:2])),
        tag("p", tag("b", "Do: "), with_code(finding.advice)),
        *(tag("p", tag("b", "Seen: "), with_code(item.statement)) for item in finding.evidence),
        tag("p", tag("b", "But: "), with_code(" ".join(caveats))) if caveats else "",
        tag("p", tag("b", "Explains also: "), "; ".join(finding.symptoms)) if finding.symptoms else "",
        tag(
            "details",
            tag("summary", "SQL that reproduces the numbers"),
            *(tag("pre", item.sql, class_="sql") for item in finding.evidence),
        ),
        class_="finding",
        id=f"finding-{number}",
    )


def _together(lines: Sequence[FindingLine]) -> list[list[FindingLine]]:
    """Lines that one excerpt shows, those of one file that are close to the first, in the order given."""
    groups: list[list[FindingLine]] = []
    for line in lines:
        for group in groups:
            if group[0].file == line.file and abs(group[0].line - line.line) <= CONTEXT_LINES:
                group.append(line)
                break
        else:
            groups.append([line])
    return groups


def _excerpt(lines: Sequence[FindingLine], code: CodeFile | None) -> Markup:
    numbers = sorted({line.line for line in lines})
    first = lines[0]
    place = tag(
        "div",
        f"{first.file}:{', '.join(map(str, numbers))}",
        tag("span", f" {first.function}", class_="function"),
        class_="place",
    )
    begin, end = numbers[0] - CONTEXT_LINES, numbers[-1] + CONTEXT_LINES
    near = [entry for entry in code.lines if begin <= entry.number <= end] if code else []
    if not near:
        return join(place, *(tag("pre", line.code, class_="code") for line in lines))
    head = tag(
        "div",
        tag("span", "line", class_="number"),
        tag("span", "whole run", class_="cost"),
        class_="row head",
        title="What the line cost over the whole recording, in host and device time",
    )
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
            class_="row here" if entry.number in numbers else "row",
        )
        for entry in near
    ]
    return join(place, tag("div", head, *rows, class_="code"))


def _not_checked(findings: Findings) -> Markup:
    if not findings.not_checked:
        return Markup("")
    groups = [
        tag("li", group.sentence, tag("div", ", ".join(group.rules), class_="note"))
        for group in unchecked(findings.not_checked)
    ]
    count = len(findings.not_checked)
    title = f"{count} rule{'' if count == 1 else 's'} could not be checked"
    return tag("details", tag("summary", title), tag("ul", *groups))
