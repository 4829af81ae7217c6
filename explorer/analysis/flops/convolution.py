"""Convolutions: 2 x (output elements) x (input channels of a group) x (kernel elements); a bias costs one per output.

The backward pass is one such product for each gradient that is asked for (output_mask).
"""

from __future__ import annotations

import math

from explorer.analysis.flops.call import Call, Work

FAMILY = "convolution"

_FORWARD = {
    # places of stride, padding, dilation, transposed, output_padding among the concrete inputs
    "aten::convolution": (3, 4, 5, 6, 7),
    "aten::_convolution": (3, 4, 5, 6, 7),
    "aten::convolution_overrideable": (3, 4, 5, 6, 7),
    "aten::conv1d": (3, 4, 5, None, None),
    "aten::conv2d": (3, 4, 5, None, None),
    "aten::conv3d": (3, 4, 5, None, None),
    "aten::cudnn_convolution": (3, 2, 4, None, None),
    "aten::miopen_convolution": (4, 3, 5, None, None),
    "aten::miopen_depthwise_convolution": (4, 3, 5, None, None),
    "aten::mkldnn_convolution": (4, 3, 5, None, None),
    "aten::thnn_conv2d": (4, 5, None, None, None),
    "aten::_slow_conv2d_forward": (4, 5, None, None, None),
    "aten::slow_conv3d_forward": (4, 5, None, None, None),
    "aten::_conv_depthwise2d": (4, 5, 6, None, None),
}
_BACKWARD = {
    # places of output gradient, input, weight; of stride ... ; of the mask of wanted gradients
    "aten::convolution_backward": ((0, 1, 2), 10),
    "aten::cudnn_convolution_backward": ((1, 0, 2), None),
    "aten::mkldnn_convolution_backward": ((1, 0, 2), None),
    "aten::miopen_convolution_backward": ((1, 0, 2), None),
}
OPS = frozenset((*_FORWARD, *_BACKWARD))


def work(call: Call) -> Work | None:
    """Operations and bytes of a convolution or its backward pass; None where the shapes do not fit."""
    return _forward(call) if call.name in _FORWARD else _backward(call)


def _forward(call: Call) -> Work | None:
    data, weight = call.shape(0), call.shape(1)
    if not data or not weight or len(data) != len(weight) or len(data) < 3:
        return None
    stride_at, padding_at, dilation_at, transposed_at, output_padding_at = _FORWARD[call.name]
    spatial = len(data) - 2
    stride = _per_dimension(call.numbers(stride_at), spatial, 1)
    padding = _per_dimension(call.numbers(padding_at), spatial, 0)
    dilation = _per_dimension(call.numbers(dilation_at) if dilation_at is not None else None, spatial, 1)
    if stride is None or padding is None or dilation is None:
        return None
    kernel = weight[2:]
    if transposed_at is not None and call.flag(transposed_at):
        extra = _per_dimension(call.numbers(output_padding_at or 0), spatial, 0) or [0] * spatial
        size = [
            (n - 1) * s - 2 * p + d * (k - 1) + e + 1
            for n, s, p, d, k, e in zip(data[2:], stride, padding, dilation, kernel, extra)
        ]
        # Every input element meets every weight of its group.
        products = math.prod(data) * weight[1] * math.prod(kernel)
        groups = max(_groups(call), 1)
        outputs = data[0] * weight[1] * groups * math.prod(size)
    else:
        size = [
            (n + 2 * p - d * (k - 1) - 1) // s + 1
            for n, p, d, k, s in zip(data[2:], padding, dilation, kernel, stride)
        ]
        if any(n <= 0 for n in size):
            return None
        outputs = data[0] * weight[0] * math.prod(size)
        products = outputs * weight[1] * math.prod(kernel)
    bias = _bias_place(call)
    flops = 2 * products + (outputs if bias is not None else 0)
    moved = call.tensor_bytes(0) + call.tensor_bytes(1) + outputs * call.item_bytes(0)
    moved += call.tensor_bytes(bias) if bias is not None else 0
    return Work(flops, moved, f"2 x {products}" + (f" + {outputs}" if bias is not None else ""))


def _backward(call: Call) -> Work | None:
    (gradient_at, data_at, weight_at), mask_at = _BACKWARD[call.name]
    gradient, data, weight = call.shape(gradient_at), call.shape(data_at), call.shape(weight_at)
    if not gradient or not data or not weight or len(gradient) != len(weight):
        return None
    mask = (
        call.concrete[mask_at]
        if mask_at is not None and mask_at < len(call.concrete)
        else "[True, True, False]"
    )
    wanted = [part.strip(" []").lower() == "true" for part in mask.split(",")]
    products = math.prod(gradient) * weight[1] * math.prod(weight[2:])
    if call.name == "aten::convolution_backward" and call.flag(7):
        products = math.prod(data) * weight[1] * math.prod(weight[2:])
    count = sum(wanted[:2])
    bias = math.prod(gradient) if len(wanted) > 2 and wanted[2] else 0
    moved = count * (
        call.tensor_bytes(gradient_at) + call.tensor_bytes(data_at) + call.tensor_bytes(weight_at)
    )
    return Work(
        2 * products * count + bias, moved, f"{count} x 2 x {products}" + (f" + {bias}" if bias else "")
    )


def _per_dimension(values: list[int] | None, count: int, default: int) -> list[int] | None:
    if not values:
        return [default] * count
    return values * count if len(values) == 1 else values if len(values) == count else None


def _bias_place(call: Call) -> int | None:
    """Place of a bias: a one-dimensional tensor after the weight."""
    for place in (2, 3):
        shape = call.shape(place)
        if shape and len(shape) == 1 and call.shape(1) and call.dtype(place) == call.dtype(1):
            return place
    return None


def _groups(call: Call) -> int:
    values = call.numbers(8)
    return values[0] if values else 1
