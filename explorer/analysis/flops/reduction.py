"""Reductions: one operation per input element (variance and norms: three and two)."""

from __future__ import annotations

import math

from explorer.analysis.flops.call import Call, Work

FAMILY = "reduction"

EACH = {
    "aten::sum": 1,
    "aten::mean": 1,
    "aten::max": 1,
    "aten::min": 1,
    "aten::amax": 1,
    "aten::amin": 1,
    "aten::argmax": 1,
    "aten::argmin": 1,
    "aten::any": 1,
    "aten::all": 1,
    "aten::prod": 1,
    "aten::cumsum": 1,
    "aten::var": 3,
    "aten::std": 3,
    "aten::var_mean": 3,
    "aten::norm": 2,
    "aten::linalg_vector_norm": 2,
    "aten::nll_loss_forward": 0,
}
"""Operations per input element."""
OPS = frozenset(EACH)


def work(call: Call) -> Work | None:
    """Operations and bytes: the input is read once; the output is small and not counted."""
    shape = call.shape(0)
    if shape is None:
        return None
    elements = math.prod(shape)
    return Work(EACH[call.name] * elements, call.tensor_bytes(0), f"{EACH[call.name]} x {elements}")
