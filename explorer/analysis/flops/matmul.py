"""Matrix products: 2 m k n per product; an added matrix costs one operation per element.

Inductor's Triton products (triton_tem_fused_mm_3) get the two factors first (the def_kernel lines of torch/_inductor/kernel).
"""

from __future__ import annotations

import math
import re

from explorer.analysis.flops.call import Call, Work

FAMILY = "matmul"

_PLACES = {
    "aten::mm": (0, 1, None),
    "aten::bmm": (0, 1, None),
    "aten::matmul": (0, 1, None),
    "aten::mv": (0, 1, None),
    "aten::dot": (0, 1, None),
    "aten::vdot": (0, 1, None),
    "aten::addmm": (1, 2, 0),
    "aten::addmm_": (1, 2, 0),
    "aten::baddbmm": (1, 2, 0),
    "aten::baddbmm_": (1, 2, 0),
    "aten::addbmm": (1, 2, 0),
    "aten::addmv": (1, 2, 0),
    "aten::addmv_": (1, 2, 0),
    "aten::_addmm_activation": (1, 2, 0),
    "aten::_int_mm": (0, 1, None),
    "aten::_scaled_mm": (0, 1, None),
    "aten::linear": (0, 1, 2),
    "aten::mkldnn_linear": (0, 1, 2),
    "mkldnn::_linear_pointwise": (0, 1, 2),
    "mkl::_mkl_linear": (0, 1, None),
}
"""Places of the two factors and of the added tensor among the inputs."""

OPS = frozenset(_PLACES)
PATTERN = re.compile(r"triton_tem_fused_(\w+_)?(add|badd|b)?mm_\w*\d+")
_TRANSPOSED = frozenset(("aten::linear", "aten::mkldnn_linear", "mkldnn::_linear_pointwise"))


def work(call: Call) -> Work | None:
    """Operations and bytes of a matrix product; None where the shapes do not fit."""
    left, right, added = _PLACES.get(call.name, (0, 1, None))
    a, b = call.shape(left), call.shape(right)
    if not a or not b:
        return None
    inner = a[-1]
    if call.name in _TRANSPOSED:
        if b[-1] != inner:
            return None
        rows, columns, batch = math.prod(a[:-1]), b[0] if len(b) > 1 else 1, 1
    else:
        rows = a[-2] if len(a) > 1 else 1
        columns = b[-1] if len(b) > 1 else 1
        if (b[-2] if len(b) > 1 else b[0]) != inner:
            return None
        batch = max(math.prod(a[:-2]), math.prod(b[:-2]))
    flops = 2 * batch * rows * inner * columns
    output = batch * rows * columns
    extra = 0
    if added is not None and call.shape(added):
        flops += output
        extra = call.tensor_bytes(added)
    item = call.item_bytes(left)
    # Products of one-byte numbers come out in two bytes.
    size = call.tensor_bytes(left) + call.tensor_bytes(right) + extra + output * max(item, 2)
    text = f"2 x {batch} x {rows} x {inner} x {columns}" + (f" + {output}" if extra else "")
    return Work(flops, size, text)
