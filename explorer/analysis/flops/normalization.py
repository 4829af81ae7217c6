"""Normalisations and softmax: a fixed number of operations per element, forward and backward.

Layer, batch and group norm: mean 1, centring 1, variance 2, scaling 1, affine 2 = 7; backward twice that. RMS norm: square
and sum 2, scaling 1, weight 1 = 4. Softmax: maximum 1, subtract 1, exponent 1, sum 1, divide 1 = 5; backward 4.
"""

from __future__ import annotations

import math

from explorer.analysis.flops.call import Call, Work

FAMILY = "normalization"

_FORWARD = {
    "aten::native_layer_norm": 7,
    "aten::native_group_norm": 7,
    "aten::native_batch_norm": 7,
    "aten::cudnn_batch_norm": 7,
    "aten::miopen_batch_norm": 7,
    "aten::_native_batch_norm_legit": 7,
    "aten::_batch_norm_with_update": 7,
    "aten::_fused_rms_norm": 4,
    "aten::rms_norm": 4,
    "aten::_softmax": 5,
    "aten::_log_softmax": 5,
}
_BACKWARD = {
    "aten::native_layer_norm_backward": 14,
    "aten::native_group_norm_backward": 14,
    "aten::native_batch_norm_backward": 14,
    "aten::cudnn_batch_norm_backward": 14,
    "aten::miopen_batch_norm_backward": 14,
    "aten::batch_norm_backward": 14,
    "aten::_fused_rms_norm_backward": 8,
    "aten::_softmax_backward_data": 4,
    "aten::_log_softmax_backward_data": 4,
}
EACH = {**_FORWARD, **_BACKWARD}
"""Operations per element."""
OPS = frozenset(EACH)


def work(call: Call) -> Work | None:
    """Operations and bytes: forward reads and writes the tensor once, backward reads two and writes one."""
    shape = call.shape(0)
    if shape is None:
        return None
    elements = math.prod(shape)
    backward, each = call.name in _BACKWARD, EACH[call.name]
    return Work(each * elements, call.tensor_bytes(0) * (3 if backward else 2), f"{each} x {elements}")
