"""The outermost ops of one typical step in the order they ran, for rules that look for patterns of several ops."""

from __future__ import annotations

from dataclasses import dataclass

from explorer.analysis.op_names import MATMUL, POINTWISE, REDUCTION, SOFTMAX, VIEW, family_name
from explorer.analysis.rule_context import RuleContext


@dataclass(frozen=True, slots=True)
class SequenceOp:
    """`family`: matmul, softmax, pointwise, reduction, view or other; `place`: (file, function) of the executing line."""

    event_id: int
    name: str
    family: str
    start_ns: int
    duration_ns: int
    site_id: int | None
    place: tuple[str, str] | None


def typical_step(context: RuleContext) -> list[SequenceOp]:
    """Outermost ops of the main thread outside the backward pass in the step whose length is nearest the median."""
    numbers, spans = context.scope.numbers, context.scope.spans
    condition = f"o.rank = {context.scope.rank}"
    if numbers and len(numbers) == len(spans):
        lengths = [end - start for start, end in spans]
        nearest = min(range(len(spans)), key=lambda i: (abs(lengths[i] - context.scope.median_ns), i))
        condition += f" AND o.start_ns >= {spans[nearest][0]} AND o.start_ns < {spans[nearest][1]}"
    rows = context.rows(
        f"""SELECT o.event_id, o.name, o.start_ns, o.duration_ns, o.executing_site_id FROM top_ops o
        WHERE {condition} AND o.track_id = {context.main_track} AND o.phase IS DISTINCT FROM 'backward'
          AND o.name NOT LIKE 'autograd::%' ORDER BY o.start_ns, o.event_id"""
    )
    sequence = []
    for row in rows:
        site = context.codes.get(row["executing_site_id"] or 0)
        # Ops of which only the function is known may lie anywhere in it: in a row there is nothing of them.
        known = site is not None and site["end_line"] is None
        place = (site["file"], site["function"]) if site and known else None
        sequence.append(
            SequenceOp(
                row["event_id"],
                row["name"],
                _family(row["name"]),
                row["start_ns"],
                row["duration_ns"],
                row["executing_site_id"],
                place,
            )
        )
    return sequence


def _family(name: str) -> str:
    short = family_name(name)
    for family, names in (
        ("matmul", MATMUL),
        ("softmax", SOFTMAX),
        ("pointwise", POINTWISE),
        ("reduction", REDUCTION),
        ("view", VIEW),
    ):
        if short in names:
            return family
    return "other"
