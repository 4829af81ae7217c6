"""Families of framework ops, by name without the `aten::` prefix and the in-place underscore."""

from __future__ import annotations

POINTWISE = frozenset(
    [
        "abs",
        "add",
        "addcdiv",
        "addcmul",
        "bitwise_and",
        "bitwise_not",
        "bitwise_or",
        "ceil",
        "clamp",
        "clamp_max",
        "clamp_min",
        "cos",
        "div",
        "eq",
        "erf",
        "exp",
        "expm1",
        "floor",
        "ge",
        "gelu",
        "gt",
        "hardswish",
        "hardtanh",
        "le",
        "leaky_relu",
        "lerp",
        "log",
        "log1p",
        "logical_and",
        "logical_not",
        "logical_or",
        "lt",
        "masked_fill",
        "maximum",
        "minimum",
        "mish",
        "mul",
        "ne",
        "neg",
        "pow",
        "reciprocal",
        "relu",
        "remainder",
        "round",
        "rsqrt",
        "rsub",
        "sigmoid",
        "sign",
        "silu",
        "sin",
        "softplus",
        "sqrt",
        "square",
        "sub",
        "tanh",
        "threshold",
        "true_divide",
        "where",
        "dropout",
        "native_dropout",
    ]
)
"""One result per element: memory-bound when large, so each is one more pass over memory."""

REDUCTION = frozenset(
    [
        "mean",
        "sum",
        "var",
        "std",
        "var_mean",
        "std_mean",
        "amax",
        "amin",
        "norm",
        "linalg_vector_norm",
        "max",
        "min",
        "logsumexp",
    ]
)
"""Fewer results than elements; compilers fuse them with the pointwise ops around them."""

MATMUL = frozenset(["mm", "addmm", "bmm", "baddbmm", "matmul", "linear", "einsum", "addbmm"])

CONVOLUTION = frozenset(
    ["convolution", "_convolution", "conv1d", "conv2d", "conv3d", "mkldnn_convolution", "cudnn_convolution"]
)

SOFTMAX = frozenset(["softmax", "_softmax"])

VIEW = frozenset(
    [
        "view",
        "reshape",
        "transpose",
        "permute",
        "expand",
        "select",
        "slice",
        "narrow",
        "t",
        "unsqueeze",
        "squeeze",
        "detach",
        "alias",
        "as_strided",
        "flatten",
        "unflatten",
        "chunk",
        "split",
        "unbind",
        "_unsafe_view",
        "view_as",
        "movedim",
        "swapaxes",
        "split_with_sizes",
        "numpy_T",
    ]
)
"""New looks at the same memory: no work worth counting."""


def family_name(name: str) -> str:
    """'aten::mul_' and 'aten::mul.Tensor' are both 'mul'; names of other libraries stay whole."""
    if not name.startswith("aten::"):
        return name
    short = name.removeprefix("aten::").split(".", 1)[0]
    return short[:-1] if short.endswith("_") and not short.startswith("__") else short


def listed(family: frozenset[str]) -> list[str]:
    """Full names of a family, in-place forms included, sorted: for SQL."""
    return sorted(f"aten::{name}{ending}" for name in family for ending in ("", "_"))
