"""A candidate for a finding: a rule's draft with the time it is about and its saving in the typical step."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from explorer.analysis.affected_time import AffectedTime, affected_time
from explorer.analysis.intervals import Intervals
from explorer.analysis.profiling_cost import Costs, ProfilingCost
from explorer.analysis.replay_window import ReplayWindow
from explorer.analysis.rule import Draft, Rule
from explorer.analysis.rule_context import RuleContext
from explorer.analysis.savings import capped, scaled
from explorer.analysis.step_scope import StepScope
from explorer.analysis.typical_time import typical_time
from explorer.model.finding import Saving


class Replay(Protocol):
    """Predicts a draft's saving per step by replaying the dependency graph; None where it cannot."""

    @property
    def window(self) -> ReplayWindow | None:
        """The steps it looks at; None: all in scope."""
        ...

    def __call__(self, draft: Draft, scope: StepScope, affected: AffectedTime) -> Saving | None: ...


@dataclass
class Candidate:
    """`time` is what the draft is about, `line_factor` leads from recorded time per step to the typical step's; `symptoms` and
    `overlaps_other` are set where candidates share time."""

    rule: Rule
    draft: Draft
    time: Intervals
    saving: Saving
    line_factor: float
    symptoms: list[str] = field(default_factory=list)
    overlaps_other: bool = False

    @property
    def order(self) -> tuple[int, int, str]:
        """Causes come before their symptoms: the more specific rule first, then what saves more."""
        return (-self.rule.specificity, -self.saving.expected, self.rule.name)


def sized(
    rule: Rule,
    draft: Draft,
    context: RuleContext,
    cost: ProfilingCost,
    net: Costs,
    replay: Replay | None,
) -> Candidate:
    """A draft as a candidate. `net` is `typical_time.net_steps`."""
    if draft.notice:
        return Candidate(rule, draft, Intervals.of([], []), draft.saving, 1.0)
    between_ranks = draft.side == "ranks"
    affected = affected_time((context.of_job if between_ranks else context).engine, draft.affected)
    time = Intervals.of(affected.start_ns, affected.end_ns)
    if between_ranks:
        # Neither the cost of recording one rank nor a replay of it says what the others wait for.
        return Candidate(rule, draft, time, draft.saving, 1.0)
    if draft.side == "device":
        replayed = replay(draft, context.scope, affected) if replay and context.knows_device_waits else None
        return Candidate(rule, draft, time, replayed or draft.saving, 1.0)
    spans = replay.window.spans if replay and replay.window else ()
    per_step = typical_time(time, cost, context.scope, net, bool(context.contended), spans)
    saving = scaled(draft.saving, per_step.from_mean)
    if replay and per_step.median_ns:
        # What most steps do not have (a checkpoint every tenth step) a replay of the median step cannot see.
        replayed = replay(draft, context.scope, affected)
        if replayed and "device" in context.has:
            saving = scaled(replayed, per_step.from_median)
        elif replayed and replayed.expected and not context.contended:
            # On one thread nothing saves more than the time it takes, though a difference of medians can seem to.
            saving = capped(scaled(replayed, per_step.from_median), round(per_step.typical_ns))
    return Candidate(rule, draft, time, saving, per_step.from_mean)
