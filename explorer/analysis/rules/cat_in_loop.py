"""A tensor grows by concatenation in a loop, copying everything again in each pass."""

from __future__ import annotations

import re
from collections.abc import Sequence

from explorer.analysis.code_loop import CodeLines
from explorer.analysis.rule import Draft, Rule, Setting
from explorer.analysis.rule_context import RuleContext
from explorer.model.finding import Saving

_GROWS = re.compile(
    r"^(?P<name>[\w.]+)\s*=\s*torch\.(?:cat|concat|concatenate|vstack|hstack|stack)\(\s*[\[(]\s*(?P=name)\b"
)


def check(context: RuleContext) -> Sequence[Draft]:
    drafts = []
    for line in CodeLines(context).lines:
        grows = _GROWS.match(line.code)
        if not grows or line.visits < context.setting(RULE, "passes"):
            continue
        ops = f"""SELECT o.event_id, o.start_ns, o.duration_ns FROM top_ops o
WHERE {context.where("o")} AND o.executing_site_id = {line.site_id} AND o.track_id = {context.main_track}"""
        evidence, row = context.evidence(
            "{calls} concatenations per step at this line take {time_ns} per step.",
            f"SELECT count(*) / {context.count} AS calls, (coalesce(sum(duration_ns), 0) / {context.count})::BIGINT AS time_ns FROM ({ops})",
            f"SELECT event_id FROM ({ops}) ORDER BY duration_ns DESC, event_id",
        )
        time_ns = row["time_ns"]
        if time_ns < context.setting(RULE, "cat_share") * context.scope.mean_ns:
            continue
        # n passes copy 1 + 2 + ... + n parts, about n²/2; one concatenation at the end copies n.
        kept = min(1.0, 2 / row["calls"])
        expected = round((1 - kept) * time_ns)
        drafts.append(
            Draft(
                title=f"Growing by concatenation at {context.place(line.site_id)}",
                line_times_ns={line.site_id: round(line.host_ns)},
                saving=Saving(low=round(0.7 * expected), expected=expected, high=time_ns),
                evidence=[evidence],
                advice=f"`{line.code}` copies all of `{grows['name']}` in each pass: append the parts to a list and call torch.cat once after the loop, or write into a tensor allocated before it.",
                affected=ops,
                remaining_share=kept,
            )
        )
    return drafts


RULE = Rule(
    name="cat_in_loop",
    title="Growing by concatenation",
    specificity=3,
    needs=("host_states", "ops"),
    check=check,
    settings=(
        Setting("passes", 8, "Fewest passes per step", "ours: below, the square has not begun to hurt"),
        Setting("cat_share", 0.03, "Smallest part of the step", "ours: the 'medium' limit of severities"),
    ),
)
