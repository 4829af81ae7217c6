"""Findings of a run: every rule is asked, causes swallow their symptoms, and the worst comes first."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any, Protocol

import numpy as np

from explorer.analysis import rules as rules_package
from explorer.analysis.candidate import Candidate, Replay, sized
from explorer.analysis.damage import lacking
from explorer.analysis.engine import Engine
from explorer.analysis.finished_findings import finished, one_rank, with_notices
from explorer.analysis.profiling_cost import Costs, ProfilingCost, profiling_cost
from explorer.analysis.replay_saving import ReplaySaving, replayable
from explorer.analysis.replay_window import ReplayWindow, replay_window
from explorer.analysis.rule import NEEDS, Rule
from explorer.analysis.rule_context import RuleContext
from explorer.analysis.scratch_engine import scratch_engine
from explorer.analysis.step_scope import find_scope
from explorer.analysis.symptoms import without_symptoms
from explorer.analysis.typical_time import net_steps
from explorer.analysis.what_if import Replays
from explorer.model.errors import InputError
from explorer.model.finding import Findings, NotChecked


class HasEngine(Protocol):
    """What `find` needs of a run."""

    @property
    def engine(self) -> Engine: ...


Told = Callable[[int, int, int], object]
"""Told how many rules were asked, of how many, and how many findings there are so far"""


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
        can = replay and scope.total_ns > 0 and replayable(engine, scope.rank)
        window = replay_window(engine, scope) if can else None
        predict = None
        if can and (window is None or window.numbers):
            replays = Replays(engine, {scope.rank: window.span} if window else {})
            predict = ReplaySaving(replays, window)
            if rules is None:
                # Most runs have a finding whose saving is replayed: the graph is loaded while the rules are asked.
                replays.begin(scope.rank, background)
        context = RuleContext(engine, scope, settings or {}, job=run.engine)
        asked = all_rules() if rules is None else tuple(rules)
        return _find(context, asked, predict, window, told)


def _find(
    context: RuleContext,
    asked: Sequence[Rule],
    replay: Replay | None,
    window: ReplayWindow | None,
    told: Told | None = None,
) -> Findings:
    scope, reader = context.scope, context.of_job.engine.reader
    health = _health(context.of_job.engine)
    if scope.total_ns <= 0:
        reasons = tuple(NotChecked(rule.name, NEEDS["events"]) for rule in asked)
        return Findings(reader.directory, 0, 0, len(reader.ranks), (), reasons, health)
    cost = profiling_cost(context.engine, scope, context.main_track)
    net = net_steps(cost, scope)
    step_ns = round(float(np.median(net)))
    candidates, not_checked = _ask(asked, context, cost, net, replay, told)
    notices = [candidate for candidate in candidates if candidate.draft.notice]
    kept = without_symptoms([candidate for candidate in candidates if not candidate.draft.notice])
    findings = with_notices(finished(kept, context, step_ns, health, window), notices, context, step_ns)
    doubts = (context.contended, one_rank(context), window.sentence if window else "")
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
        doubts=tuple(doubt for doubt in doubts if doubt in said),
    )


def _ask(
    asked: Sequence[Rule],
    context: RuleContext,
    cost: ProfilingCost,
    net: Costs,
    replay: Replay | None,
    told: Told | None = None,
) -> tuple[list[Candidate], list[NotChecked]]:
    candidates: list[Candidate] = []
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
            candidates += [sized(rule, draft, context, cost, net, replay) for draft in drafts]
        except InputError:
            # A damaged file is no fault of a rule: the answer would not be whole.
            raise
        except Exception as error:
            reason = " ".join(str(error).split())[:200]
            not_checked.append(
                NotChecked(rule.name, f"the rule failed on this run: {type(error).__name__}: {reason}")
            )
    return candidates, not_checked


def _health(engine: Engine) -> tuple[dict[str, Any], ...]:
    rows = engine.sql(
        """SELECT rank, kind, severity, count, message, remedy, affects FROM health ORDER BY rank, kind <> 'neuron_warning',
        CASE severity WHEN 'error' THEN 0 WHEN 'warning' THEN 1 ELSE 2 END, kind, message"""
    )
    return (*lacking(engine.reader), *rows)
