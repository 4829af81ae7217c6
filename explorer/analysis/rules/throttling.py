"""A device lowers its clock for power or heat while it computes."""

from __future__ import annotations

from collections.abc import Sequence

from explorer.analysis.rule import Draft, Rule, Setting
from explorer.analysis.rule_context import RuleContext
from explorer.model.finding import Saving


def check(context: RuleContext) -> Sequence[Draft]:
    samples = f"""SELECT t.label, c.timestamp_ns, max(c.value) FILTER (WHERE c.name = 'throttled') AS throttled,
  max(c.value) FILTER (WHERE c.name = 'sm_clock') AS clock FROM counters c JOIN tracks t ON t.rank = c.rank AND t.track_id = c.track_id
WHERE c.rank = {context.scope.rank} AND c.name IN ('throttled', 'sm_clock')
  AND c.timestamp_ns BETWEEN {context.scope.start_ns} AND {context.scope.end_ns} GROUP BY ALL"""
    devices = context.rows(
        f"""SELECT label, avg(throttled) AS throttled_share FROM ({samples}) WHERE throttled IS NOT NULL GROUP BY label
        HAVING throttled_share >= {context.setting(RULE, "throttled_share")} ORDER BY throttled_share DESC, label"""
    )
    work = f"""SELECT e.event_id, e.start_ns, e.duration_ns FROM events e JOIN tracks t ON t.rank = e.rank AND t.track_id = e.track_id
WHERE {context.where()} AND t.kind <> 'thread' AND e.category = 'kernel'"""
    drafts = []
    for device in devices[:1]:
        here = f"label = '{device['label'].replace(chr(39), chr(39) * 2)}'"
        evidence, row = context.evidence(
            device["label"]
            + " was throttled in {throttled_share} of {samples} samples; its clock was then {slow_share} of its highest, while kernels run {kernel_ns} per step.",
            f"""SELECT count(*) AS samples, avg(throttled) AS throttled_share,
  coalesce(avg(clock) FILTER (WHERE throttled > 0) / max(clock), 1) AS slow_share,
  (SELECT coalesce(sum(duration_ns), 0) / {context.count} FROM ({work}))::BIGINT AS kernel_ns FROM ({samples}) WHERE {here}""",
        )
        lost = float(row["throttled_share"]) * (1 - float(row["slow_share"]))
        expected = round(min(row["kernel_ns"], context.scope.mean_ns) * lost)
        if expected < context.setting(RULE, "lost_share") * context.scope.mean_ns:
            continue
        drafts.append(
            Draft(
                title=f"{device['label']} is throttled",
                line_times_ns={},
                saving=Saving(low=0, expected=expected, high=round(1.5 * expected)),
                evidence=[evidence],
                advice="Look at cooling, at the power limit (nvidia-smi -q -d PERFORMANCE) and at neighbours that share the power; lower precision and "
                "fewer bytes moved also draw less.",
                affected=work,
                remaining_share=1 - lost,
                side="device",
                confidence="medium",
                caveats=["Kernels bound by memory do not slow down in proportion to the clock."],
                key=device["label"],
            )
        )
    return drafts


RULE = Rule(
    name="throttling",
    title="Device throttling",
    specificity=1,
    needs=("kernels", "counters"),
    check=check,
    settings=(
        Setting(
            "throttled_share",
            0.1,
            "Smallest part of the samples with a throttle reason other than idleness",
            "ours",
        ),
        Setting(
            "lost_share",
            0.01,
            "Smallest part of the step lost by the lower clock",
            "ours: below 1 % nothing is gained",
        ),
    ),
)
