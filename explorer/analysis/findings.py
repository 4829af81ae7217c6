"""Findings of a run: every rule is asked, causes swallow their symptoms, and the worst comes first."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Protocol

import numpy as np

from explorer.analysis import rules as rules_package
from explorer.analysis.engine import Engine
from explorer.analysis.intervals import Intervals, Times
from explorer.analysis.profiling_cost import ProfilingCost, profiling_cost
from explorer.analysis.replay_saving import ReplaySaving, replayable
from explorer.analysis.rule import NEEDS, Draft, Rule
from explorer.analysis.rule_context import RuleContext
from explorer.analysis.scratch_engine import scratch_engine
from explorer.analysis.step_scope import StepScope, find_scope
from explorer.analysis.what_if import Replays
from explorer.model.errors import InputError
from explorer.model.finding import Evidence, Finding, FindingLine, Findings, NotChecked, Saving, severity_of
from explorer.model.ids import content_id

SMALLEST_SHARE = 0.005
"""Findings that would save less of the step are left out (TraceLens drops impacts under the same 0.5 %)."""

SYMPTOM_OVERLAP = 0.5
"""A finding with more than this part of its time inside more specific ones is a symptom of them."""

CONFIDENCES = ("low", "medium", "high")


class HasEngine(Protocol):
    """What `find` needs of a run."""

    @property
    def engine(self) -> Engine: ...


class Replay(Protocol):
    """Predicts a draft's saving per step by replaying the dependency graph; None where it cannot."""

    def __call__(self, draft: Draft, scope: StepScope) -> Saving | None: ...


@dataclass
class _Candidate:
    rule: Rule
    draft: Draft
    time: Intervals
    saving: Saving
    line_factor: float
    symptoms: list[str] = field(default_factory=list)
    overlaps_other: bool = False

    @property
    def order(self) -> tuple[int, int, str]:
        return (-self.rule.specificity, -self.saving.expected, self.rule.name)


@cache
def all_rules() -> tuple[Rule, ...]:
    """The rule of every module in `rules/`, by name."""
    names = sorted(module.name for module in pkgutil.iter_modules(rules_package.__path__))
    modules = [importlib.import_module(f"{rules_package.__name__}.{name}") for name in names]
    return tuple(module.RULE for module in modules if hasattr(module, "RULE"))


def find(
    run: HasEngine,
    *,
    settings: Mapping[str, float] | None = None,
    rules: Sequence[Rule] | None = None,
    replay: bool = True,
) -> Findings:
    """All findings of a run, worst first.

    Args:
        run: an opened run.
        settings: thresholds to change, by '<rule>.<setting>'.
        rules: only these rules; None: all.
        replay: predict savings from the dependency graph; without it, or where it cannot, each saving is a bound.

    A rule that fails on a run does not take the others with it: it is listed under `not_checked` with the error.
    """
    with scratch_engine(run.engine) as engine, ThreadPoolExecutor(1) as background:
        scope = find_scope(engine)
        replays = Replays(engine) if replay else None
        if replays and rules is None and scope.total_ns > 0 and replayable(engine, scope.rank):
            # Most runs have a finding whose saving is replayed: the graph is loaded while the rules are asked.
            replays.begin(scope.rank, background)
        predict = ReplaySaving(replays) if replays else None
        return _find(engine, scope, settings or {}, all_rules() if rules is None else tuple(rules), predict)


def _find(
    engine: Engine,
    scope: StepScope,
    settings: Mapping[str, float],
    asked: Sequence[Rule],
    replay: Replay | None,
) -> Findings:
    context = RuleContext(engine, scope, settings)
    health = _health(engine)
    if scope.total_ns <= 0:
        reasons = tuple(NotChecked(rule.name, NEEDS["events"]) for rule in asked)
        return Findings(engine.reader.directory, 0, 0, len(engine.reader.ranks), (), reasons, health)
    cost = profiling_cost(engine, scope, context.main_track)
    spans = np.array(scope.spans, dtype=np.int64)
    inside = cost.inside_ns(Intervals.of(spans[:, 0], spans[:, 1]))
    step_ns = round(scope.median_ns * (scope.total_ns - inside) / scope.total_ns)
    candidates, not_checked = _ask(asked, context, cost, replay)
    kept = _without_symptoms(candidates)
    findings = _finished(kept, context, step_ns, health)
    return Findings(
        run=engine.reader.directory,
        step_ns=step_ns,
        steps=len(scope.numbers),
        ranks=len(engine.reader.ranks),
        findings=tuple(findings),
        not_checked=tuple(not_checked),
        health=health,
    )


def _ask(
    asked: Sequence[Rule], context: RuleContext, cost: ProfilingCost, replay: Replay | None
) -> tuple[list[_Candidate], list[NotChecked]]:
    candidates: list[_Candidate] = []
    not_checked: list[NotChecked] = []
    for rule in asked:
        missing = [need for need in rule.needs if need not in context.has]
        if missing:
            not_checked.append(NotChecked(rule.name, NEEDS[missing[0]]))
            continue
        try:
            drafts = rule.check(context)
            if isinstance(drafts, NotChecked):
                not_checked.append(drafts)
                continue
            candidates += [_candidate(rule, draft, context, cost, replay) for draft in drafts]
        except InputError:
            # A damaged file is no fault of a rule: the answer would not be whole.
            raise
        except Exception as error:
            reason = " ".join(str(error).split())[:200]
            not_checked.append(
                NotChecked(rule.name, f"the rule failed on this run: {type(error).__name__}: {reason}")
            )
    return candidates, not_checked


def _candidate(
    rule: Rule, draft: Draft, context: RuleContext, cost: ProfilingCost, replay: Replay | None
) -> _Candidate:
    table = context.engine.sql(
        f"SELECT start_ns, start_ns + duration_ns AS end_ns FROM ({draft.affected})"
    ).arrow()
    time = Intervals.of(table.column("start_ns").to_numpy(), table.column("end_ns").to_numpy())
    own, from_mean, from_median, steady = 1.0, 1.0, 1.0, True
    if draft.side == "host":
        per_step = _per_step(time, context.scope)
        mean, median = float(per_step.mean()), float(np.median(per_step))
        steady = median > 0
        if steady:
            typical = _typical_ns(per_step, context.scope, bool(context.contended))
            from_mean, from_median = typical / mean, typical / median
        if time.total_ns:
            own = 1 - cost.inside_ns(time) / time.total_ns
    saving = _scaled(draft.saving, own * from_mean)
    if replay and steady and (draft.side == "host" or context.knows_device_waits):
        # What most steps do not have (a checkpoint every tenth step) a replay of the median step cannot see.
        replayed = replay(draft, context.scope)
        if replayed and "device" in context.has:
            saving = _scaled(replayed, own * from_median)
        elif replayed and replayed.expected and not context.contended:
            # On one thread nothing saves more than the time it takes, though a difference of medians can seem to.
            most_ns = round(own * from_mean * time.total_ns / context.count)
            saving = _capped(_scaled(replayed, own * from_median), most_ns)
    return _Candidate(rule, draft, time, saving, own * from_mean)


def _per_step(time: Intervals, scope: StepScope) -> Times:
    """Affected time of each step in scope. (The device lags behind the host's steps: its time has no step by position.)"""
    bounds = np.array(scope.spans, dtype=np.int64)
    return time.covered_before(bounds[:, 1]) - time.covered_before(bounds[:, 0])


def _typical_ns(per_step: Times, scope: StepScope, contended: bool) -> float:
    """Affected time of the median step: its length times the part of a step that is affected.

    The part is the median over the steps, so that single interruptions do not show. Where other programs take the processor
    all the time, interruptions hit long stretches more often than short ones and a median would favour the short: there
    the part is that of all steps together.
    """
    bounds = np.array(scope.spans, dtype=np.int64)
    length = np.maximum(1, bounds[:, 1] - bounds[:, 0])
    part = per_step.sum() / length.sum() if contended else np.median(per_step / length)
    return float(part) * scope.median_ns


def _without_symptoms(candidates: list[_Candidate]) -> list[_Candidate]:
    """Causes first: time that a more specific finding claims is taken from the others, which become its symptoms."""
    kept: list[_Candidate] = []
    for candidate in sorted(candidates, key=lambda item: item.order):
        if candidate.saving.expected <= 0:
            continue
        same_side = [other for other in kept if other.draft.side == candidate.draft.side]
        overlaps = [(candidate.time.overlap_ns(other.time), other) for other in same_side]
        claimed = Intervals.of([], [])
        for overlap, other in overlaps:
            if overlap:
                claimed = claimed.union(other.time)
        share = candidate.time.overlap_ns(claimed) / max(1, candidate.time.total_ns)
        if share > SYMPTOM_OVERLAP:
            cause = max(overlaps, key=lambda item: item[0])[1]
            cause.symptoms.append(f"{candidate.rule.name}: {candidate.draft.title}")
            continue
        if share:
            candidate.saving = _scaled(candidate.saving, 1 - share)
            candidate.overlaps_other = True
        kept.append(candidate)
    return kept


def _finished(
    kept: list[_Candidate],
    context: RuleContext,
    step_ns: int,
    health: tuple[dict[str, Any], ...],
) -> list[Finding]:
    kept.sort(key=lambda item: (-item.saving.expected, item.rule.name, item.draft.title))
    left_ns = step_ns
    contended = context.contended
    found: list[Finding] = []
    for candidate in kept:
        saving = _capped(candidate.saving, left_ns)
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
                evidence=tuple(_worded(item, context.scope) for item in candidate.draft.evidence),
                advice=candidate.draft.advice,
                ranks=(context.scope.rank,),
                steps=context.scope.numbers,
                caveats=tuple(caveats),
                symptoms=tuple(candidate.symptoms),
            )
        )
    return _unique(found)


def _worded(evidence: Evidence, scope: StepScope) -> Evidence:
    """Rules speak of steps; a recording without any counts as one and is not called so."""
    if scope.numbers:
        return evidence
    return replace(evidence, statement=re.sub(r" (per|of each|in each) step\b", "", evidence.statement))


def _lines(candidate: _Candidate, context: RuleContext, step_ns: int) -> tuple[FindingLine, ...]:
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


def _key(candidate: _Candidate, lines: tuple[FindingLine, ...]) -> str:
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


def _health(engine: Engine) -> tuple[dict[str, Any], ...]:
    rows = engine.sql(
        "SELECT rank, kind, severity, count, message, remedy, affects FROM health ORDER BY rank, severity, kind, message"
    )
    return tuple(rows.rows())


def _scaled(saving: Saving, factor: float) -> Saving:
    return Saving(
        low=round(saving.low * factor),
        expected=round(saving.expected * factor),
        high=round(saving.high * factor),
        basis=saving.basis,
    )


def _capped(saving: Saving, limit_ns: int) -> Saving:
    limit_ns = max(0, limit_ns)
    return Saving(
        min(saving.low, limit_ns), min(saving.expected, limit_ns), min(saving.high, limit_ns), saving.basis
    )
