"""Half-precision matrix products whose dimensions do not fit the tensor cores."""

from __future__ import annotations

from collections.abc import Sequence

from explorer.analysis.op_cost import device_time
from explorer.analysis.op_names import family_name
from explorer.analysis.rule import Draft, Rule, Setting
from explorer.analysis.rule_context import RuleContext
from explorer.analysis.shape_text import listed
from explorer.model.finding import Saving

_PRODUCTS = ("aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm")
_HALF = ("c10::Half", "c10::BFloat16", "at::Half", "at::BFloat16")


def check(context: RuleContext) -> Sequence[Draft]:
    multiple = round(context.setting(RULE, "multiple"))
    rows = context.rows(
        f"""SELECT e.name, e.shapes, e.dtypes, count(*) AS calls FROM events e
        WHERE {context.where()} AND e.category = 'op' AND {context.in_texts("e.name", _PRODUCTS)} AND e.shapes IS NOT NULL
        GROUP BY ALL ORDER BY calls DESC, e.shapes"""
    )
    odd = [row for row in rows if _unaligned(row, multiple)]
    if not odd:
        return []
    shapes = sorted({row["shapes"] for row in odd})
    ops = f"""SELECT e.event_id, e.start_ns, e.duration_ns, e.site_id FROM events e
WHERE {context.where()} AND e.category = 'op' AND {context.in_texts("e.name", _PRODUCTS)} AND {context.in_texts("e.shapes", shapes)}"""
    work = device_time(context, ops)
    evidence, row = context.evidence(
        "{ops} half-precision products per step have a dimension that is no multiple of "
        + str(multiple)
        + "; they take {time_ns} per step on the device.",
        f"""SELECT (SELECT count(*) FROM ({ops})) / {context.count} AS ops, (coalesce(sum(duration_ns), 0) / {context.count})::BIGINT AS time_ns FROM ({work})""",
        ops,
    )
    time_ns = row["time_ns"]
    if time_ns < context.setting(RULE, "product_share") * context.scope.mean_ns:
        return []
    lines = context.costliest_lines(work, most=5)
    expected = round(context.setting(RULE, "saved_share") * time_ns)
    return [
        Draft(
            title="Matrix dimensions do not fit the tensor cores",
            line_times_ns=lines,
            saving=Saving(low=0, expected=expected, high=2 * expected),
            evidence=[evidence],
            advice=f"Pad the odd dimension to a multiple of {multiple} (vocabulary, hidden size, batch): shapes such as {odd[0]['shapes'][:80]}.",
            affected=f"SELECT event_id, start_ns, duration_ns FROM ({work})",
            remaining_share=1 - context.setting(RULE, "saved_share"),
            side="device",
            confidence="medium",
            key="unaligned",
        )
    ]


def _unaligned(row: dict[str, str], multiple: int) -> bool:
    dtypes, shapes = listed(row["dtypes"]), listed(row["shapes"])
    first = 1 if family_name(row["name"]) in ("addmm", "baddbmm") else 0
    operands = shapes[first : first + 2]
    if not any(dtype in _HALF for dtype in dtypes[first : first + 2]) or len(operands) < 2:
        return False
    if not all(isinstance(shape, list) and len(shape) >= 2 for shape in operands):
        return False
    # Rows, inner dimension and columns of the product; a single row or column is a vector and no tensor-core work.
    sizes = (operands[0][-2], operands[0][-1], operands[1][-1])
    return min(sizes) > multiple and any(size % multiple for size in sizes)


RULE = Rule(
    name="unaligned_dims",
    title="Unaligned matrix dimensions",
    specificity=3,
    needs=("kernels", "shapes"),
    check=check,
    settings=(
        Setting(
            "multiple",
            8,
            "Dimensions should be a multiple of this",
            "torch.profiler's pattern matcher and cuBLAS: 8 for half precision",
        ),
        Setting("product_share", 0.05, "Smallest part of the step in such products", "ours"),
        Setting(
            "saved_share",
            0.3,
            "Part of their time that padding saves",
            "NVIDIA's matrix multiplication guide reports 1.2 to 2 times",
        ),
    ),
)
