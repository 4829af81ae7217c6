"""Scaled dot-product attention: 2 B H (pairs) (D + Dv) forward, 2 B H (pairs) (3 D + 2 Dv) backward.

Forward are the products Q K^T and P V; backward recomputes Q K^T and makes dP, dV, dQ, dK (Dao et al., FlashAttention,
2022). pairs = Lq Lk; with a causal mask only those not masked: for Lq = Lk = L they are L (L + 1) / 2. The softmax between
the products is not counted.

FlexAttention, compiled: Inductor's Triton templates get query, key and value first, heads before length (the def_kernel
lines of torch/_inductor/kernel/flex). What its block mask leaves out is in no recording, so all pairs are counted.
"""

from __future__ import annotations

import math
import re

from explorer.analysis.flops.call import Call, Work

FAMILY = "attention"

_FORWARD = {
    # places of query, key, value; place of is_causal among the concrete inputs; heads before length in the shapes
    "aten::scaled_dot_product_attention": ((0, 1, 2), 5, True),
    "aten::_scaled_dot_product_flash_attention": ((0, 1, 2), 4, True),
    "aten::_scaled_dot_product_flash_attention_for_cpu": ((0, 1, 2), 4, True),
    "aten::_scaled_dot_product_efficient_attention": ((0, 1, 2), 6, True),
    "aten::_scaled_dot_product_cudnn_attention": ((0, 1, 2), 6, True),
    "aten::_scaled_dot_product_fused_attention_overrideable": ((0, 1, 2), 5, True),
    "aten::_scaled_dot_product_attention_math": ((0, 1, 2), 5, True),
    "aten::_flash_attention_forward": ((0, 1, 2), 8, False),
    "aten::_efficient_attention_forward": ((0, 1, 2), None, False),
    "flash_attn::_flash_attn_forward": ((0, 1, 2), 5, False),
}
_BACKWARD = {
    "aten::_scaled_dot_product_flash_attention_backward": ((1, 2, 3), 10, True),
    "aten::_scaled_dot_product_flash_attention_for_cpu_backward": ((1, 2, 3), 7, True),
    "aten::_scaled_dot_product_efficient_attention_backward": ((1, 2, 3), 11, True),
    "aten::_scaled_dot_product_cudnn_attention_backward": ((1, 2, 3), 13, True),
    "aten::_flash_attention_backward": ((1, 2, 3), 11, False),
    "flash_attn::_flash_attn_backward": ((1, 2, 3), 11, False),
}
OPS = frozenset((*_FORWARD, *_BACKWARD))
PATTERN = re.compile(r"triton_tem_fused_\w*flex_(attention|decoding)(?P<backward>_backward)?\w*")
_FLEX = ((0, 1, 2), None, True)


def work(call: Call) -> Work | None:
    """Operations and bytes of attention or its backward pass; None where the shapes do not fit."""
    flex = PATTERN.fullmatch(call.name)
    backward = flex["backward"] is not None if flex else call.name in _BACKWARD
    places, causal_at, heads_first = _FLEX if flex else (_BACKWARD if backward else _FORWARD)[call.name]
    query, key, value = (call.shape(place) for place in places)
    if not query or not key or not value or len(query) != 4 or len(key) != 4 or len(value) != 4:
        return None
    heads, length = (query[1], query[2]) if heads_first else (query[2], query[1])
    other = key[2] if heads_first else key[1]
    causal = causal_at is not None and call.flag(causal_at)
    pairs = visible_pairs(length, other) if causal else length * other
    width = 3 * query[3] + 2 * value[3] if backward else query[3] + value[3]
    flops = 2 * query[0] * heads * pairs * width
    moved = sum(call.tensor_bytes(place) for place in places)
    output = math.prod(query[:3]) * value[3] * call.item_bytes(places[0])
    # Backward also reads the output and its gradient and writes three gradients.
    moved = 2 * moved + 2 * output if backward else moved + output
    note = " (causal)" if causal else " (as without block mask)" if flex else ""
    return Work(flops, moved, f"2 x {query[0]} x {heads} x {pairs} x {width}{note}")


def visible_pairs(length: int, other: int) -> int:
    """Pairs of a query and a key that a causal mask aligned to the top left leaves: key <= query."""
    square = min(length, other)
    return square * (square + 1) // 2 + max(length - other, 0) * other
