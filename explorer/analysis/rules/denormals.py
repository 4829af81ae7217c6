"""Arithmetic on numbers so close to zero that the processor takes a slow path."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from explorer.analysis.engine import literal
from explorer.analysis.rule import Draft, NotChecked, Rule, Setting
from explorer.analysis.rule_context import RuleContext
from explorer.analysis.shape_text import listed
from explorer.model.finding import Saving

CHEAP = tuple(
    f"aten::{name}{suffix}"
    for name in ("add", "sub", "mul", "div", "sqrt", "rsqrt", "reciprocal", "addcmul", "addcdiv", "lerp")
    for suffix in ("", "_")
)
"""Elementwise arithmetic that takes a nanosecond or two per element, whatever the values, unless they are denormal."""

_NAMES = ", ".join(literal(name) for name in CHEAP)


def check(context: RuleContext) -> Sequence[Draft] | NotChecked:
    if "device" in context.has:
        return NotChecked(RULE.name, "only processors have such a slow path, and the device computes here")
    places = _places(context)
    if not places:
        return []
    values = ", ".join(f"({literal(name)}, {site}, {ordinary})" for name, site, ordinary in places)
    # Where others have the processor, ordinary calls take longer as well.
    times_slower = max(context.setting(RULE, "times_slower"), 2 * context.stretch)
    calls = context.engine.keep(
        f"""SELECT c.*, p.ordinary_ns FROM ({_calls(context)}) c
JOIN (VALUES {values}) p(name, site_id, ordinary_ns) ON p.name = c.name AND p.site_id = c.site_id WHERE {context.where("c")}"""
    )
    # An interruption slows a call now and then; numbers slow the same calls again and again.
    slow = context.engine.keep(
        f"""SELECT * FROM ({calls}) WHERE duration_ns >= {times_slower:.2f}::DOUBLE * ordinary_ns AND (name, site_id) IN (
  SELECT (name, site_id) FROM ({calls}) GROUP BY name, site_id
  HAVING count(DISTINCT CASE WHEN duration_ns >= {times_slower:.2f}::DOUBLE * ordinary_ns THEN coalesce(step, -1) END)
    >= {context.setting(RULE, "slow_steps_share")} * count(DISTINCT coalesce(step, -1)))"""
    )
    evidence, row = context.evidence(
        "{calls} calls of cheap arithmetic per step, in {slow_steps} steps, take {slow_ns}; on ordinary numbers such calls take {ordinary_ns}.",
        f"""SELECT count(*) / {context.count} AS calls, count(DISTINCT step) AS slow_steps,
  (coalesce(sum(duration_ns), 0) / {context.count})::BIGINT AS slow_ns,
  (coalesce(sum(ordinary_ns), 0) / {context.count})::BIGINT AS ordinary_ns FROM ({slow})""",
        f"SELECT event_id FROM ({slow}) ORDER BY duration_ns DESC, event_id",
    )
    saved_ns = row["slow_ns"] - row["ordinary_ns"]
    if saved_ns < context.setting(RULE, "slow_share") * context.scope.mean_ns:
        return []
    lines = context.costliest_lines(slow)
    code = context.code(next(iter(lines), None))
    return [
        Draft(
            title="Arithmetic on denormal numbers",
            line_times_ns=lines,
            saving=Saving(low=saved_ns // 2, expected=saved_ns, high=row["slow_ns"]),
            evidence=[evidence],
            advice=(f"`{code}` most likely meets" if code else "Some tensors most likely hold")
            + " numbers below 1e-38 (1e-308 in float64): call torch.set_flush_denormal(True) at the start of the program, or keep "
            "moving averages and states from fading that far (clamp_min, a larger eps, adding a small constant).",
            affected=f"SELECT event_id, start_ns, duration_ns FROM ({slow})",
            remaining_share=row["ordinary_ns"] / row["slow_ns"],
            confidence="medium",
            caveats=[
                "The values themselves are not recorded: whether they are denormal shows in a look at the tensor, or in the time "
                "after the change."
            ],
            key="" if lines else "denormals",
        )
    ]


def _calls(context: RuleContext) -> str:
    """SQL, answered once, for the calls of such arithmetic on the scope's rank.

    Without those that only hand a number on to the same op (`tensor * 2` is an `aten::mul` in an `aten::mul`): they compute nothing, and
    beside them every other call would look slow.
    """
    return context.engine.keep(
        f"""SELECT e.rank, e.event_id, e.start_ns, e.self_ns AS duration_ns, e.step, e.name, e.shapes, coalesce(k.site_id, e.site_id) AS site_id
FROM events e LEFT JOIN stacks k ON k.stack_id = e.stack_id AND k.depth = 0
WHERE e.rank = {context.scope.rank} AND e.category = 'op' AND e.name IN ({_NAMES})
  AND e.event_id NOT IN (SELECT i.parent_id FROM events i JOIN events o ON o.rank = i.rank AND o.event_id = i.parent_id AND o.name = i.name
    WHERE i.rank = {context.scope.rank} AND i.category = 'op' AND i.name IN ({_NAMES}))"""
    )


def _places(context: RuleContext) -> list[tuple[str, int, int]]:
    """(op, line, ordinary_ns) of large calls: what one takes there on ordinary numbers.

    That is by its size, or as the quick calls of that line where all are of one size. Shapes are recorded in some steps only.
    """
    sizes: dict[tuple[str, int], set[int]] = {}
    for row in context.rows(
        f"SELECT DISTINCT name, site_id, shapes FROM ({_calls(context)}) WHERE shapes IS NOT NULL AND site_id IS NOT NULL"
    ):
        sizes.setdefault((row["name"], row["site_id"]), set()).add(_elements(row["shapes"]))
    quick = {
        (row["name"], row["site_id"]): row["quick_ns"]
        for row in context.rows(
            f"""SELECT name, site_id, quantile_cont(duration_ns, 0.1)::BIGINT AS quick_ns FROM ({_calls(context)})
            WHERE site_id IS NOT NULL GROUP BY ALL"""
        )
    }
    found = []
    for (name, site), elements in sorted(sizes.items()):
        if max(elements) < context.setting(RULE, "elements"):
            continue
        ordinary = round(max(elements) * context.setting(RULE, "element_ns"))
        found.append((name, site, min(ordinary, quick[name, site]) if len(elements) == 1 else ordinary))
    return found


def _elements(shapes: str) -> int:
    """Elements of the largest operand."""
    return max(
        (
            prod(shape)
            for shape in listed(shapes)
            if isinstance(shape, list) and all(isinstance(n, int) for n in shape)
        ),
        default=0,
    )


RULE = Rule(
    name="denormals",
    title="Denormal numbers",
    specificity=3,
    needs=("ops", "shapes"),
    check=check,
    settings=(
        Setting("elements", 16_384, "Fewest elements of a call: below it the call itself counts", "ours"),
        Setting(
            "element_ns",
            1.0,
            "Time per element of such arithmetic on ordinary numbers, where the run shows no quicker call",
            "measured: 0.1 (add, float32) to 1.9 ns (sqrt, float64), torch 2.13 on one core; sqrt of denormals 16 to 50 ns",
        ),
        Setting("times_slower", 5, "Times slower than on ordinary numbers", "measured: 2 (div) to 27 (sqrt)"),
        Setting(
            "slow_steps_share",
            0.8,
            "Smallest part of a line's steps with a slow call",
            "ours: interruptions are rarer",
        ),
        Setting("slow_share", 0.02, "Smallest part of the step that would be saved", "ours"),
    ),
)
