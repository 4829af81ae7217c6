"""Fused and foreach optimizer ops over lists of tensors: operations per parameter element.

Adam and AdamW (Kingma and Ba, 2015; Loshchilov and Hutter, 2019): both moments 3 + 4, bias correction and square root 4,
step 2, weight decay 2 = 15; SGD with momentum 4. Foreach ops: as the elementwise op of the same name.
"""

from __future__ import annotations

import math
from typing import Any

from explorer.analysis.flops.call import ITEM_BYTES, Call, Work, dtype_name

FAMILY = "optimizer"

_FUSED = {
    # operations per element, tensors read and written per element
    "aten::_fused_adam_": (15, 7),
    "aten::_fused_adamw_": (15, 7),
    "aten::_fused_sgd_": (4, 5),
    "aten::_fused_adagrad_": (6, 5),
}
_FOREACH = {
    "add": 1, "sub": 1, "mul": 1, "div": 1, "sqrt": 1, "reciprocal": 1, "neg": 1, "exp": 1, "pow": 1, "lerp": 3,
    "addcmul": 3, "addcdiv": 3, "maximum": 1, "norm": 2, "copy": 0, "zero": 0, "clamp_max": 1, "clamp_min": 1,
}  # fmt: skip
OPS = frozenset((*_FUSED, *(f"aten::_foreach_{name}{suffix}" for name in _FOREACH for suffix in ("", "_"))))


def work(call: Call) -> Work | None:
    """Operations and bytes over all tensors of the first list; None where the recorder kept no list."""
    lists = [shapes for shapes in call.shapes if _is_list_of_shapes(shapes)]
    if not lists:
        return None
    elements = sum(math.prod(shape) for shape in lists[0])
    item = next((ITEM_BYTES[d] for t in call.dtypes[:1] if (d := dtype_name(t.strip("[]")))), 4)
    if call.name in _FUSED:
        each, moves = _FUSED[call.name]
    else:
        each = _FOREACH[call.name.removeprefix("aten::_foreach_").removesuffix("_")]
        moves = len(lists) + (0 if call.name.endswith(("norm", "zero_")) else 1)
    return Work(each * elements, moves * elements * item, f"{each} x {elements}")


def _is_list_of_shapes(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(shape, list) for shape in value)
