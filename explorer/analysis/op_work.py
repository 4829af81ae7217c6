"""Floating point operations and bytes of every distinct op call: the computed table `op_work`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from explorer.model.schema import Column, Table

if TYPE_CHECKING:
    import pyarrow as pa

    from explorer.analysis.engine import Engine

OP_WORK = Table(
    "op_work",
    "What each distinct op call with recorded shapes has to compute and move, by the models in explorer/analysis/flops.",
    (
        Column("name", "string", "Op name"),
        Column("shapes", "string", "JSON list of input shapes as recorded"),
        Column("dtypes", "string", "JSON list of input dtypes as recorded", nullable=True),
        Column("concrete", "string", "JSON list of the other inputs as recorded", nullable=True),
        Column(
            "family",
            "string",
            "matmul, convolution, attention, normalization, pointwise, reduction, embedding, optimizer, fused",
        ),
        Column("dtype", "string", "dtype it computes in", nullable=True),
        Column("flops", "int64", "Operations; a multiply-add counts two", unit="flop"),
        Column(
            "size_bytes", "int64", "Bytes that must move at least: inputs once, output once", unit="bytes"
        ),
        Column("formula", "string", "How the operations were counted"),
    ),
)


def compute(engine: Engine) -> pa.Table:
    """One row per distinct call that a model knows."""
    import pyarrow as pa

    from explorer.analysis.flops.call import Call
    from explorer.analysis.flops.models import GENERATED, family_of, work_of

    calls = engine.sql(
        """
        SELECT DISTINCT name, shapes, dtypes, json_extract(attributes, '$."Concrete Inputs"')::VARCHAR AS concrete
        FROM events
        WHERE category = 'op' AND shapes IS NOT NULL AND (list_contains($names, name) OR starts_with(name, $generated))
        """,
        {"names": sorted(family_of()), "generated": GENERATED},
    )
    rows: list[dict[str, Any]] = []
    for row in calls.rows():
        call = Call.parse(**row)
        found = work_of(call) if call else None
        if call is None or found is None:
            continue
        family, work = found
        rows.append(
            {
                **row,
                "family": family,
                "dtype": call.compute_dtype(),
                "flops": work.flops,
                "size_bytes": work.size_bytes,
                "formula": work.formula,
            }
        )
    return pa.Table.from_pylist(rows, OP_WORK.arrow_schema())
