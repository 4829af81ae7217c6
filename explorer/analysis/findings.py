"""Findings of a run: every rule is asked, causes swallow their symptoms, and the worst comes first."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Protocol

import numpy as np

from explorer.analysis import rules as rules_package
from explorer.analysis.affected_time import AffectedTime, affected_time
from explorer.analysis.damage import lacking
from explorer.analysis.engine import Engine
from explorer.analysis.intervals import Intervals
from explorer.analysis.profiling_cost import Costs, ProfilingCost, profiling_cost
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
_WORST_FIRST = ("high", "medium", "low")


class HasEngine(Protocol):
    """What `find` needs of a run."""

    @property
    def engine(self) -> Engine: ...


Told = Callable[[int, int, int], object]
"""Told how many rules were asked, of how many, and how many findings there are so far"""


class Replay(Protocol):
    """Predicts a draft's saving per step by replaying the dependency graph; None where it cannot."""

    def __call__(self, draft: Draft, scope: StepScope, affected: AffectedTime) -> Saving | None: ...


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
    told: Told | None = None,
) -> Findings:
    """All findings of a run, worst first.

    Args:
        run: an opened run.
        settings: thresholds to change, by '<rule>.<setting>'.
        rules: only these rules; None: all.
        replay: predict savings from the dependency graph; without it, or where it cannot, each saving is a bound.
        told: called before each rule with how many were asked, of how many, and how many findings there are so far.

    A rule that fails on a run does not take the others with it: it is listed under `not_checked` with the error.
    """
    scope = find_scope(run.engine)
    with scratch_engine(run.engine, ranks=[scope.rank]) as engine, ThreadPoolExecutor(1) as background:
        replays = Replays(engine) if replay else None
        if replays and rules is None and scope.total_ns > 0 and replayable(engine, scope.rank):
            # Most runs have a finding whose saving is replayed: the graph is loaded while the rules are asked.
            replays.begin(scope.rank, background)
        predict = ReplaySaving(replays) if replays else None
        context = RuleContext(engine, scope, settings or {}, job=run.engine)
        return _find(context, all_rules() if rules is None else tuple(rules), predict, told)


def _find(
    context: RuleContext, asked: Sequence[Rule], replay: Replay | None, told: Told | None = None
) -> Findings:
    scope, reader = context.scope, context.of_job.engine.reader
    health = _health(context.of_job.engine)
    if scope.total_ns <= 0:
        reasons = tuple(NotChecked(rule.name, NEEDS["events"]) for rule in asked)
        return Findings(reader.directory, 0, 0, len(reader.ranks), (), reasons, health)
    cost = profiling_cost(context.engine, scope, context.main_track)
    net_steps = _net_steps(cost, scope)
    step_ns = round(float(np.median(net_steps)))
    candidates, not_checked = _ask(asked, context, cost, net_steps, replay, told)
    notices = [candidate for candidate in candidates if candidate.draft.notice]
    kept = _without_symptoms([candidate for candidate in candidates if not candidate.draft.notice])
    findings = _with_notices(_finished(kept, context, step_ns, health), notices, context, step_ns)
    said = {caveat for finding in findings for caveat in finding.caveats}
    return Findings(
        run=reader.directory,
        step_ns=step_ns,
        steps=len(scope.numbers),
        ranks=len(reader.ranks),
        findings=tuple(findings),
        not_checked=tuple(not_checked),
        health=health,
        recorded_step_ns=scope.mean_ns,
        doubts=tuple(doubt for doubt in (context.contended, _one_rank(context)) if doubt in said),
    )


def _ask(
    asked: Sequence[Rule],
    context: RuleContext,
    cost: ProfilingCost,
    net_steps: Costs,
    replay: Replay | None,
    told: Told | None = None,
) -> tuple[list[_Candidate], list[NotChecked]]:
    candidates: list[_Candidate] = []
    not_checked: list[NotChecked] = []
    for number, rule in enumerate(asked):
        if told is not None:
            told(number, len(asked), len(candidates))
        missing = [need for need in rule.needs if need not in context.has]
        if missing:
            not_checked.append(NotChecked(rule.name, NEEDS[missing[0]]))
            continue
        try:
            drafts = rule.check(context.of_job if "ranks" in rule.needs else context)
            if isinstance(drafts, NotChecked):
                not_checked.append(drafts)
                continue
            candidates += [_candidate(rule, draft, context, cost, net_steps, replay) for draft in drafts]
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
    rule: Rule,
    draft: Draft,
    context: RuleContext,
    cost: ProfilingCost,
    net_steps: Costs,
    replay: Replay | None,
) -> _Candidate:
    if draft.notice:
        return _Candidate(rule, draft, Intervals.of([], []), draft.saving, 1.0)
    between_ranks = draft.side == "ranks"
    affected = affected_time((context.of_job if between_ranks else context).engine, draft.affected)
    time = Intervals.of(affected.start_ns, affected.end_ns)
    if between_ranks:
        # Neither the cost of recording one rank nor a replay of it says what the others wait for.
        return _Candidate(rule, draft, time, draft.saving, 1.0)
    if draft.side == "device":
        replayed = replay(draft, context.scope, affected) if replay and context.knows_device_waits else None
        return _Candidate(rule, draft, time, replayed or draft.saving, 1.0)
    per_step = _affected(time, cost, context.scope, net_steps, bool(context.contended))
    saving = _scaled(draft.saving, per_step.from_mean)
    if replay and per_step.median_ns:
        # What most steps do not have (a checkpoint every tenth step) a replay of the median step cannot see.
        replayed = replay(draft, context.scope, affected)
        if replayed and "device" in context.has:
            saving = _scaled(replayed, per_step.from_median)
        elif replayed and replayed.expected and not context.contended:
            # On one thread nothing saves more than the time it takes, though a difference of medians can seem to.
            saving = _capped(_scaled(replayed, per_step.from_median), round(per_step.typical_ns))
    return _Candidate(rule, draft, time, saving, per_step.from_mean)


@dataclass(frozen=True)
class _Affected:
    """Affected host time per step: mean and median as recorded, and of the typical step without what recording cost."""

    mean_ns: float
    median_ns: float
    typical_ns: float

    @property
    def from_mean(self) -> float:
        """Factor from a recorded mean to the typical step."""
        return self.typical_ns / self.mean_ns if self.mean_ns else 1.0

    @property
    def from_median(self) -> float:
        return self.typical_ns / self.median_ns if self.median_ns else 1.0


def _net_steps(cost: ProfilingCost, scope: StepScope) -> Costs:
    """Length of each step in scope without what recording it cost."""
    return np.array(
        [end - start - cost.inside_ns(Intervals.of([start], [end])) for start, end in scope.spans]
    )


def _affected(
    time: Intervals, cost: ProfilingCost, scope: StepScope, net_steps: Costs, contended: bool
) -> _Affected:
    """The typical step is as long as the median one, and affected in the median part, so that single interruptions do not
    show. (Cost is taken off step by step: hot code is recorded in some steps and not in others.)

    Where other programs take the processor all the time, interruptions hit long stretches more often than short ones and a
    median would favour the short: there the part is that of all steps together.
    """
    parts = [time.within(start, end) for start, end in scope.spans]
    recorded = np.array([part.total_ns for part in parts], dtype=float)
    net = np.array([part.total_ns - cost.inside_ns(part) for part in parts])
    steps = np.maximum(1.0, net_steps)
    lengths = np.array([end - start for start, end in scope.spans], dtype=float)
    # Of the median step the median part, as a replay shortens it: where steps differ, other medians speak of other steps.
    mean, median = (
        float(recorded.mean()),
        float(np.median(recorded / np.maximum(1.0, lengths)) * np.median(lengths)),
    )
    if not median:
        # What few steps have is spread over all of them.
        return _Affected(mean, median, float(net.mean()))
    part = net.sum() / steps.sum() if contended else np.median(net / steps)
    return _Affected(mean, median, float(part * np.median(steps)))


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
        if "ranks" in context.has and "ranks" not in candidate.rule.needs:
            caveats.append(_one_rank(context))
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


def _one_rank(context: RuleContext) -> str:
    return (
        f"Only rank {context.scope.rank}, the slowest, was looked at; rules that compare ranks look at all."
    )


def _worded(evidence: Evidence, context: RuleContext) -> Evidence:
    """With its examples. Rules speak of steps; a recording without any counts as one and is not called so."""
    evidence = context.with_examples(evidence)
    if context.scope.numbers:
        return evidence
    return replace(evidence, statement=re.sub(r" (per|of each|in each) step\b", "", evidence.statement))


def _with_notices(
    findings: list[Finding], notices: list[_Candidate], context: RuleContext, step_ns: int
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
        """SELECT rank, kind, severity, count, message, remedy, affects FROM health ORDER BY rank, kind <> 'neuron_warning',
        CASE severity WHEN 'error' THEN 0 WHEN 'warning' THEN 1 ELSE 2 END, kind, message"""
    )
    return (*lacking(engine.reader), *rows)


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
