"""Elementwise ops: operations per element of the (broadcast) output; copies and fills cost none, but move bytes."""

from __future__ import annotations

import math

from explorer.analysis.flops.call import Call, Work

FAMILY = "pointwise"

EACH = {
    "add": 1, "sub": 1, "rsub": 1, "mul": 1, "div": 1, "neg": 1, "abs": 1, "maximum": 1, "minimum": 1, "clamp": 1,
    "clamp_min": 1, "clamp_max": 1, "relu": 1, "threshold": 1, "threshold_backward": 1, "reciprocal": 1, "sqrt": 1,
    "rsqrt": 2, "exp": 1, "log": 1, "pow": 1, "sin": 1, "cos": 1, "tanh": 1, "erf": 1, "sigmoid": 3, "silu": 4,
    "silu_backward": 7, "gelu": 8, "gelu_backward": 14, "tanh_backward": 3, "sigmoid_backward": 3, "lerp": 3,
    "addcmul": 3, "addcdiv": 3, "where": 1, "masked_fill": 1, "native_dropout": 2, "native_dropout_backward": 2,
    "bernoulli": 1, "leaky_relu": 2, "hardtanh": 1, "mse_loss": 2, "eq": 1, "ne": 1, "gt": 1, "ge": 1, "lt": 1, "le": 1,
    "bitwise_and": 1, "bitwise_or": 1, "bitwise_not": 1, "logical_not": 1, "square": 1,
    "copy": 0, "_to_copy": 0, "clone": 0, "contiguous": 0, "fill": 0, "zero": 0, "cat": 0,
}  # fmt: skip
"""Operations per element."""
OPS = frozenset(f"aten::{name}{suffix}" for name in EACH for suffix in ("", "_"))
_WRITES_ONLY = ("aten::fill_", "aten::zero_", "aten::fill", "aten::zero")


def work(call: Call) -> Work | None:
    """Operations and bytes of an elementwise op: every tensor input read once, the output written once."""
    name = call.name.removeprefix("aten::")
    each = EACH[name if name in EACH else name.removesuffix("_")]
    if name == "cat":
        return _cat(call)
    tensors = call.tensors()
    if not tensors:
        return None
    elements = broadcast([call.shape(place) or [] for place in tensors])
    if elements is None:
        return None
    in_place = call.name.endswith("_")
    written = elements * (call.item_bytes(tensors[0]) if in_place else max(map(call.item_bytes, tensors)))
    if call.name in _WRITES_ONLY:
        return Work(0, written, f"0 x {elements}")
    copies = name.rstrip("_") == "copy" and len(tensors) > 1
    read = call.tensor_bytes(tensors[1]) if copies else sum(call.tensor_bytes(place) for place in tensors)
    return Work(each * elements, read + written, f"{each} x {elements}")


def broadcast(shapes: list[list[int]]) -> int | None:
    """Elements of the broadcast shape; None where the shapes do not fit."""
    total = 1
    for back in range(1, max(map(len, shapes), default=0) + 1):
        sizes = {shape[-back] for shape in shapes if len(shape) >= back}
        sizes.discard(1)
        if len(sizes) > 1:
            return None
        total *= sizes.pop() if sizes else 1
    return total


def _cat(call: Call) -> Work | None:
    parts = call.shapes[0] if call.shapes else None
    if not isinstance(parts, list) or not all(isinstance(part, list) for part in parts):
        return None
    elements = sum(math.prod(part) for part in parts)
    return Work(0, 2 * elements * call.item_bytes(0), f"0 x {elements}")
