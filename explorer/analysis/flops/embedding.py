"""Embeddings and gathers: no operations; the rows that are looked up are read and written once."""

from __future__ import annotations

import math

from explorer.analysis.flops.call import Call, Work

FAMILY = "embedding"

OPS = frozenset(
    (
        "aten::embedding",
        "aten::embedding_dense_backward",
        "aten::index_select",
        "aten::gather",
        "aten::_embedding_bag",
    )
)


def work(call: Call) -> Work | None:
    """Bytes of a lookup: each row once in and once out, plus the indices; the gradient adds one operation per element."""
    table, places = call.shape(0), None
    indices_at = {"aten::index_select": 2, "aten::gather": 2}.get(call.name, 1)
    places = call.shape(indices_at)
    if not table or places is None:
        return None
    count = math.prod(places)
    width = 1 if call.name == "aten::gather" else math.prod(table[1:])
    if call.name == "aten::embedding_dense_backward":
        elements = math.prod(table)
        return Work(elements, 2 * call.tensor_bytes(0) + call.tensor_bytes(1), f"1 x {elements}")
    moved = 2 * count * width * call.item_bytes(0) + call.tensor_bytes(indices_at)
    return Work(0, moved, f"0 x {count * width}")
