"""One rank arrives late at communication and all others wait for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from explorer.analysis.engine import Engine
from explorer.analysis.ranks.given_work import WORK_KINDS, given_work
from explorer.analysis.ranks.stragglers import PERSISTENT_SHARE, Straggler, stragglers
from explorer.analysis.rule import Draft, NotChecked, Rule, Setting
from explorer.analysis.rule_context import RuleContext
from explorer.analysis.rules import contention, memory_pressure, throttling
from explorer.model.finding import Saving


def check(context: RuleContext) -> Sequence[Draft] | NotChecked:
    if not context.rows("SELECT 1 FROM collective_waits WHERE ranks_seen > 1 LIMIT 1"):
        return NotChecked(RULE.name, "no communication call was recorded by more than one rank")
    smallest = context.setting(RULE, "delay_share")
    late = [item for item in stragglers(context.engine) if item.share >= smallest]
    if late and given_work(context):
        # They are late because they are given more to do: load_imbalance says so for all of them. Only what a rank does more
        # of from step to step beside its work is something else.
        late = [item for item in late if item.is_explained and not _computes_longer(item)]
    return [_draft(context, item) for item in late]


def _computes_longer(item: Straggler) -> bool:
    return item.cause is not None and item.cause.kind in WORK_KINDS


def _confidence(item: Straggler) -> str:
    """Of a rank that is late now and then a single interruption by the system is no sign of anything."""
    if item.pattern == "random":
        return "medium" if item.is_explained else "low"
    return "high" if item.is_explained else "medium"


def _draft(context: RuleContext, item: Straggler) -> Draft:
    late = (
        "median(caused_ns)"
        if item.steps_last >= PERSISTENT_SHARE * item.steps
        else f"(sum(caused_ns) / {item.steps})"
    )
    evidence, _ = context.evidence(
        f"Rank {item.rank} arrives last at {{last_calls}} of {{calls}} calls, {{late_ns}} per step later than the median rank.",
        f"""SELECT sum(last_calls)::BIGINT AS last_calls, sum(calls)::BIGINT AS calls,
  {late}::BIGINT AS late_ns FROM rank_waits WHERE complete AND NOT disturbed AND rank = {item.rank}""",
        f"""SELECT w.rank, w.event_id FROM collective_waits w WHERE w.match_id = (
  SELECT arg_max(match_id, late_ns) FROM collective_waits WHERE rank = {item.rank} AND is_last)
ORDER BY w.rank <> {item.rank}, w.wait_ns DESC, w.rank""",
    )
    cause = item.cause
    own = _of_its_own(context, item)
    where = f" at {cause.file}:{cause.line}" if cause and cause.file else ""
    title = f"Rank {item.rank} holds the others up{where}"
    explained = min(item.delay_ns, cause.more_ns) if cause else 0
    return Draft(
        title=title,
        line_times_ns={cause.site_id: cause.more_ns} if cause and cause.site_id is not None else {},
        saving=Saving(explained // 2, item.delay_ns, item.delay_ns),
        evidence=[evidence, *(proof for draft in own for proof in draft.evidence)],
        advice=" ".join([_advice(item), *(f"{draft.title}. {draft.advice}" for draft in own)]),
        affected=_affected(context, item),
        side="ranks",
        confidence=_confidence(item),
        caveats=[f"Clocks of the ranks are aligned to within {item.residual_ns / 1e3:.1f} µs."],
        key=f"rank {item.rank}",
        ranks=(item.rank,),
    )


def _of_its_own(context: RuleContext, item: Straggler) -> list[Draft]:
    """What troubles a rank's device or host, where it is slow at computing or nothing says why it is late."""
    if item.cause and not _computes_longer(item):
        return []
    engine = Engine(context.engine.reader.of_ranks([item.rank]))
    try:
        own = RuleContext(engine, replace(context.scope, rank=item.rank), context.overrides)
        found: list[Draft] = []
        for rule in (throttling.RULE, memory_pressure.RULE, contention.RULE):
            drafts = rule.check(own) if set(rule.needs) <= own.has else []
            # Its engine closes here: the example events are looked up now.
            found += [
                replace(draft, evidence=[own.with_examples(item) for item in draft.evidence])
                for draft in ([] if isinstance(drafts, NotChecked) else drafts)
            ]
        return found
    finally:
        engine.close()


def _advice(item: Straggler) -> str:
    cause = item.cause
    since = f" since step {item.first_step}" if item.pattern == "persistent" and item.first_step else ""
    pattern = "" if item.pattern == "unknown" else f" ({item.pattern})"
    how = f"It is last in {item.steps_last} of {item.steps} step{'' if item.steps == 1 else 's'}{since}{pattern}."
    if cause is None and item.pattern == "random":
        once = item.causes[0] if item.causes and item.steps_last == 1 else None
        there = (
            f" In that step it spent {once.more_ns / 1e6:.2f} ms more at {once.file}:{once.line}."
            if once and once.file
            else ""
        )
        return (
            f"{how}{there} Nothing that it does more of comes again from step to step: an interruption by the system or by other"
            " programs looks the same. Record more steps on a quiet machine before changing anything."
        )
    if cause is None:
        return f"{how} Its path shows nothing it does so much more of: look at its device's clocks, its link and its neighbours on the host."
    code = f" `{cause.code}`" if cause.code else ""
    place = f" at {cause.file}:{cause.line}{code}" if cause.file else ""
    words = {
        "data": "it waits longer for its data: look at its storage and its loader workers",
        "python": "it runs more Python: look at what only this rank does there",
        "kernel": "its kernels run longer: look for throttling, another process on its device, or an uneven share of the work",
        "compute": "its device computes longer: look for throttling, another process on it, or an uneven share of the work",
        "op": "its ops run longer: look at its share of the work and at other processes on its cores",
        "io": "it reads or writes more: look at its storage",
        "gc": "its garbage collector runs more: freeze or space out collection on all ranks",
        "sync": "it waits longer for its own device",
    }.get(cause.kind, f"it spends more in {cause.kind}")
    return f"{how} Against the median rank {words}{place} ({cause.more_ns / 1e6:.2f} ms more per step)."


def _affected(context: RuleContext, item: Straggler) -> str:
    """Time that would shrink on the rank the findings speak about: what it waits for the late one, or is late itself."""
    rank = context.scope.rank
    if rank == item.rank:
        return f"SELECT start_ns - late_ns AS start_ns, late_ns AS duration_ns FROM collective_waits WHERE rank = {rank} AND is_last"
    return (
        "SELECT start_ns, wait_ns AS duration_ns FROM collective_waits"
        f" WHERE rank = {rank} AND last_rank = {item.rank} AND wait_ns > 0"
    )


RULE = Rule(
    name="straggler",
    title="A rank holds the others up",
    specificity=3,
    needs=("ranks",),
    check=check,
    settings=(
        Setting(
            "delay_share",
            0.02,
            "Smallest delay per step, as a part of the step",
            "ours: twice the share below which a change of the step counts as noise in diff",
        ),
    ),
)
