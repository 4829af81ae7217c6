"""A debugging mode was left on."""

from __future__ import annotations

import re
from collections.abc import Sequence

from explorer.analysis.op_names import VIEW, listed
from explorer.analysis.rule import Draft, Rule, Setting
from explorer.analysis.rule_context import RuleContext
from explorer.analysis.source_mentions import mentions
from explorer.model.finding import Saving

_NAN_TESTS = ("aten::isnan", "aten::_is_any_true", "aten::is_nonzero", "aten::any")
_NODES = "autograd::engine::evaluate_function: %"


def check(context: RuleContext) -> Sequence[Draft]:
    return [*_anomaly(context), *_blocking(context), *_left_on(context)]


def _anomaly(context: RuleContext) -> list[Draft]:
    """Anomaly detection tests each gradient for NaN and formats a Python stack for each forward op."""
    if not context.holds(f"events > 0 AND {context.in_texts('name', _NAN_TESTS)}"):
        return []
    nodes = f"SELECT e.event_id FROM events e WHERE {context.where()} AND e.category = 'op' AND e.name LIKE '{_NODES}'"
    tests = f"""SELECT e.event_id, e.start_ns, e.duration_ns FROM events e JOIN events p ON p.rank = e.rank AND p.event_id = e.parent_id
WHERE {context.where()} AND e.category = 'op' AND {context.in_texts("e.name", _NAN_TESTS)}
  AND p.name LIKE '{_NODES}'"""
    # A view in the forward pass takes a microsecond; under anomaly detection it also records a stack, like each forward op.
    views = f"""SELECT e.name, e.self_ns FROM events e WHERE {context.where()} AND e.category = 'op'
  AND e.phase = 'forward' AND {context.in_texts("e.name", listed(VIEW))}"""
    evidence, row = context.evidence(
        "{tests} NaN tests per step for {nodes} backward nodes take {test_ns}; a view in the forward pass takes {view_ns}.",
        f"""SELECT (SELECT count(*) / {context.count} FROM ({nodes})) AS nodes, count(*) / {context.count} AS tests,
  (coalesce(sum(duration_ns), 0) / {context.count})::BIGINT AS test_ns,
  (SELECT coalesce(max(typical_ns), 0) FROM (SELECT median(self_ns) AS typical_ns FROM ({views}) GROUP BY name))::BIGINT AS view_ns FROM ({tests})""",
        tests,
    )
    if not row["nodes"] or row["tests"] < context.setting(RULE, "tests_per_node") * row["nodes"]:
        return []
    stack_ns = max(0, row["view_ns"] - context.setting(RULE, "view_ns"))
    forward = context.row(
        f"""SELECT coalesce(sum(duration_ns), 0) / {context.count} AS forward_ns FROM top_ops o WHERE {context.where("o")} AND o.phase = 'forward'"""
    )
    expected = round(row["test_ns"] + min(row["nodes"] * stack_ns, 0.95 * float(forward["forward_ns"])))
    lines = context.rows(
        f"""SELECT o.executing_site_id AS site_id, (sum(o.duration_ns) / {context.count})::BIGINT AS time_ns FROM top_ops o
        WHERE {context.where("o")} AND o.name LIKE '{_NODES}' AND o.executing_site_id IS NOT NULL GROUP BY 1 ORDER BY time_ns DESC, site_id LIMIT 1"""
    )
    where = _source_of(context, "detect_anomaly")
    return [
        Draft(
            title="Anomaly detection is on",
            line_times_ns={
                **{
                    site: 0
                    for site, line in context.codes.items()
                    if "detect_anomaly" in (line["code"] or "")
                },
                **{item["site_id"]: item["time_ns"] for item in lines},
            },
            saving=Saving(low=row["test_ns"], expected=expected, high=round(1.3 * expected)),
            evidence=[evidence],
            advice=f"Turn torch.autograd.set_detect_anomaly off outside of debugging{f' (it is turned on at {where})' if where else ''}.",
            affected=f"""SELECT start_ns, duration_ns FROM ({tests}) UNION ALL SELECT o.start_ns, o.duration_ns FROM top_ops o
WHERE {context.where("o")} AND o.phase = 'forward'""",
            remaining_share=0.2,
            key="anomaly",
        )
    ]


def _source_of(context: RuleContext, text: str) -> str:
    return next((f"{file}:{line}" for file, line, _ in mentions(context, re.escape(text))), "")


def _blocking(context: RuleContext) -> list[Draft]:
    """Blocking launches: each launch call returns only when its kernel is done, so host and device never overlap."""
    if "kernels" not in context.has:
        return []
    launches = f"""SELECT l.event_id, l.start_ns, l.duration_ns, k.duration_ns AS kernel_ns,
  (l.start_ns + l.duration_ns >= k.start_ns + k.duration_ns)::INT AS waited
FROM events k JOIN events l ON l.rank = k.rank AND l.event_id = k.launch_id
WHERE {context.where("k")} AND k.category = 'kernel' AND l.category = 'runtime' AND l.name LIKE '%Launch%' AND l.name NOT LIKE '%Graph%'"""
    evidence, row = context.evidence(
        "{waited} of {launches} launches per step return only after their kernel has finished; the kernels take {kernel_ns} per step.",
        f"""SELECT count(*) / {context.count} AS launches, coalesce(sum(waited), 0) / {context.count} AS waited,
  (coalesce(sum(kernel_ns), 0) / {context.count})::BIGINT AS kernel_ns FROM ({launches})""",
        f"SELECT event_id FROM ({launches}) WHERE waited = 1",
    )
    if row["launches"] < context.setting(RULE, "launches") or row["waited"] < 0.95 * row["launches"]:
        return []
    host_ns = max(0, context.scope.mean_ns - row["kernel_ns"])
    expected = min(row["kernel_ns"], host_ns)
    return [
        Draft(
            title="Blocking launches are on",
            line_times_ns={},
            saving=Saving(low=expected // 3, expected=round(0.8 * expected), high=expected),
            evidence=[evidence],
            advice="Unset CUDA_LAUNCH_BLOCKING (AMD_SERIALIZE_KERNEL, NEURON_LAUNCH_BLOCKING): host and device then work at the same time.",
            affected=f"SELECT event_id, start_ns, duration_ns FROM ({launches})",
            remaining_share=0.2,
            key="blocking",
        )
    ]


_LEFT_ON = {
    "program_profiler": (
        "The program profiles itself",
        "medium",
        ("torch.profiler", "profiler.profile", "profile("),
    ),
    "tracer_took_over": ("The program traces itself", "medium", ("settrace", "setprofile", "cProfile")),
    "lines_from_stacks": ("A debugger or coverage tool is on", "low", ("settrace", "pdb", "coverage")),
}
"""What the capture noticed of other tools, by the kind in `health`: title, severity, and words of the line that starts them."""


def _left_on(context: RuleContext) -> list[Draft]:
    """Profilers, tracers and debuggers that were left on: what they cost cannot be told from here, since they hide it."""
    drafts = []
    for kind, (title, severity, words) in _LEFT_ON.items():
        said = f"SELECT message, count FROM health WHERE rank = {context.scope.rank} AND kind = '{kind}'"
        if not (rows := context.rows(said)):
            continue
        evidence, _ = context.evidence(
            "The recording noticed it {times} times.",
            f"SELECT coalesce(sum(greatest(count, 1)), 0)::BIGINT AS times FROM ({said})",
        )
        lines = [
            site
            for site, line in sorted(context.codes.items())
            if line["is_user"] and any(word in (line["code"] or "") for word in words)
        ]
        where = next((found for word in words if (found := _source_of(context, word))), "")
        drafts.append(
            Draft(
                title=title,
                line_times_ns=dict.fromkeys(lines[:3], 0),
                saving=Saving(0, 0, 0, "none"),
                evidence=[evidence],
                advice=f"Switch it off outside of measurements{f' (it is started at {where})' if where else ''}: such tools slow every op or line "
                "of the program, and hide what this recording could see.",
                affected="",
                confidence="medium",
                caveats=[rows[0]["message"]],
                key=kind,
                notice=severity,
            )
        )
    return drafts


RULE = Rule(
    name="debug_mode",
    title="Debug mode on",
    specificity=3,
    needs=("ops",),
    check=check,
    settings=(
        Setting(
            "tests_per_node",
            0.8,
            "Fewest NaN tests per backward node",
            "autograd's engine tests each output of each node",
        ),
        Setting(
            "view_ns",
            3_000,
            "Time of a view op without anomaly detection",
            "measured: 0.5 to 3 µs, torch 2.13 on CPU",
        ),
        Setting("launches", 20, "Fewest launches per step to judge blocking by", "ours"),
    ),
)
