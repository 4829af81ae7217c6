"""From candidates to findings: ranked, never more than the step in all, with their lines, confidence and caveats."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from explorer.analysis.candidate import Candidate
from explorer.analysis.replay_window import ReplayWindow
from explorer.analysis.rule import Draft
from explorer.analysis.rule_context import RuleContext
from explorer.analysis.savings import capped
from explorer.model.finding import Evidence, Finding, FindingLine, Saving, severity_of
from explorer.model.ids import content_id

SMALLEST_SHARE = 0.005
"""Findings that would save less of the step are left out (TraceLens drops impacts under the same 0.5 %)."""

CONFIDENCES = ("low", "medium", "high")
_WORST_FIRST = ("high", "medium", "low")


def finished(
    kept: list[Candidate],
    context: RuleContext,
    step_ns: int,
    health: tuple[dict[str, Any], ...],
    window: ReplayWindow | None,
) -> list[Finding]:
    """Findings of what saves time, most first. `window`: the steps that were replayed; None: all."""
    kept.sort(key=lambda item: (-item.saving.expected, item.rule.name, item.draft.title))
    left_ns = step_ns
    contended = context.contended
    found: list[Finding] = []
    for candidate in kept:
        saving = capped(candidate.saving, left_ns)
        share = saving.expected / max(1, step_ns)
        if share < SMALLEST_SHARE:
            continue
        left_ns -= saving.expected
        lines = _lines(candidate, context, step_ns)
        caveats = list(candidate.draft.caveats)
        if candidate.overlaps_other:
            caveats.append(
                "Part of this time also belongs to another finding; only the rest is counted here."
            )
        if contended:
            caveats.append(contended)
        if "ranks" in context.has and "ranks" not in candidate.rule.needs:
            caveats.append(one_rank(context))
        if window and candidate.draft.side != "ranks" and (saving.basis == "replay" or not window.numbers):
            caveats.append(window.sentence)
        found.append(
            Finding(
                id=f"{candidate.rule.name}/{_key(candidate, lines)}",
                rule=candidate.rule.name,
                title=candidate.draft.title,
                severity=severity_of(share),
                confidence=_confidence(candidate.draft, saving, context, health, bool(contended)),
                saving=saving,
                saving_share=share,
                lines=lines,
                evidence=tuple(_worded(item, context) for item in candidate.draft.evidence),
                advice=candidate.draft.advice,
                ranks=tuple(candidate.draft.ranks) or (context.scope.rank,),
                steps=context.scope.numbers,
                caveats=tuple(caveats),
                symptoms=tuple(candidate.symptoms),
            )
        )
    return _unique(found)


def one_rank(context: RuleContext) -> str:
    """Which rank rules look at that do not compare ranks."""
    return (
        f"Only rank {context.scope.rank}, the slowest, was looked at; rules that compare ranks look at all."
    )


def _worded(evidence: Evidence, context: RuleContext) -> Evidence:
    """With its examples. Rules speak of steps; a recording without any counts as one and is not called so."""
    evidence = context.with_examples(evidence)
    if context.scope.numbers:
        return evidence
    return replace(evidence, statement=re.sub(r" (per|of each|in each) step\b", "", evidence.statement))


def with_notices(
    findings: list[Finding], notices: list[Candidate], context: RuleContext, step_ns: int
) -> list[Finding]:
    """What speaks of no time, said whatever it saves: errors and what a device's own profiler warns of first, the rest after
    what saves time at its severity."""
    told = []
    for candidate in sorted(
        notices, key=lambda item: (-item.rule.specificity, item.rule.name, item.draft.title)
    ):
        draft = candidate.draft
        lines = _lines(candidate, context, step_ns)
        told.append(
            Finding(
                id=f"{candidate.rule.name}/{_key(candidate, lines)}",
                rule=candidate.rule.name,
                title=draft.title,
                severity=draft.notice,
                confidence=draft.confidence,
                saving=draft.saving,
                saving_share=0.0,
                lines=lines,
                evidence=tuple(context.with_examples(item) for item in draft.evidence),
                advice=draft.advice,
                ranks=tuple(candidate.draft.ranks) or (context.scope.rank,),
                steps=context.scope.numbers,
                caveats=tuple(draft.caveats),
            )
        )
    told = _unique(told)
    first = [
        item
        for item in told
        if item.severity == "high" or (item.rule.startswith("neuron_") and item.severity != "low")
    ]
    others = [item for item in told if item not in first]
    return first + sorted([*findings, *others], key=lambda item: _WORST_FIRST.index(item.severity))


def _lines(candidate: Candidate, context: RuleContext, step_ns: int) -> tuple[FindingLine, ...]:
    times = candidate.draft.line_times_ns
    merged: dict[tuple[str, int], list[int]] = {}
    for site_id in times:
        if site := context.codes.get(site_id):
            # A comprehension is a function of its own on the same line.
            merged.setdefault((site["file"], site["line"]), []).append(site_id)
    lines = []
    for sites in merged.values():
        site_id, recorded_ns = sites[0], sum(times[site] for site in sites)
        site = context.codes[site_id]
        time_ns = round(recorded_ns * candidate.line_factor)
        lines.append(
            FindingLine(
                site_id=site_id,
                file=site["file"],
                line=site["line"],
                function=site["function"],
                code=site["code"] or "",
                time_ns=time_ns,
                share=round(time_ns / max(1, step_ns), 6),
            )
        )
    return tuple(lines)


def _key(candidate: Candidate, lines: tuple[FindingLine, ...]) -> str:
    if candidate.draft.key:
        return str(content_id(candidate.rule.name, candidate.draft.key))
    return str(lines[0].site_id if lines else content_id(candidate.rule.name, candidate.draft.title))


def _unique(found: list[Finding]) -> list[Finding]:
    seen: dict[str, int] = {}
    unique = []
    for finding in found:
        number = seen[finding.id] = seen.get(finding.id, 0) + 1
        unique.append(finding if number == 1 else replace(finding, id=f"{finding.id}-{number}"))
    return unique


def _confidence(
    draft: Draft, saving: Saving, context: RuleContext, health: tuple[dict[str, Any], ...], contended: bool
) -> str:
    """The rule's own word, one level lower for each doubt: few steps, a wide prediction, a troubled run or machine."""
    level = CONFIDENCES.index(draft.confidence)
    if not context.scope.complete or context.count < 2:
        level -= 1
    if saving.expected and saving.low < 0.4 * saving.expected:
        level -= 1
    if any(item["severity"] == "error" for item in health) or contended:
        level -= 1
    return CONFIDENCES[max(0, level)]
