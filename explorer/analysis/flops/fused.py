"""Pointwise and reduction kernels that Inductor generates with Triton: every tensor moves once, each op counts per element.

The kernel's name lists the distinct ops it fuses (triton_poi_fused_add_mul_0); its last whole numbers are the size of the
loop (xnumel, for a reduction xnumel and rnumel). An op used twice is listed once, and a tensor that is read and written is
passed once, so both numbers are what there is at least.
"""

from __future__ import annotations

import math
import re

from explorer.analysis.flops import normalization, pointwise, reduction
from explorer.analysis.flops.call import Call, Work

FAMILY = "fused"
OPS: frozenset[str] = frozenset()
PATTERN = re.compile(r"triton_(?P<kind>poi|red|per)_fused_(?P<ops>\w+?)_\d+")
_LOOPS = {"poi": 1, "red": 2, "per": 2}
_EACH: dict[str, int] = {
    **{name.removeprefix("aten::"): each for name, each in normalization.EACH.items()},
    **{name.removeprefix("aten::"): each for name, each in reduction.EACH.items()},
    **pointwise.EACH,
}
_LONGEST_FIRST = sorted((name.lstrip("_") for name in _EACH), key=lambda name: (-len(name), name))
_WORDS = re.compile(rf"(?<![a-z0-9])(?:{'|'.join(_LONGEST_FIRST)})(?![a-z0-9])")


def work(call: Call) -> Work | None:
    """Operations and bytes at least; None where the size of the loop was not recorded."""
    named = PATTERN.fullmatch(call.name)
    if named is None:
        return None
    numbers = [number[0] for place in range(len(call.concrete)) if (number := call.numbers(place))]
    loops = numbers[-_LOOPS[named["kind"]] :]
    if not loops or min(loops) <= 0:
        return None
    elements = math.prod(loops)
    each = sum(_EACH.get(word, _EACH.get(f"_{word}", 0)) for word in set(_WORDS.findall(named["ops"])))
    moved = sum(call.tensor_bytes(place) for place in call.tensors())
    return Work(each * elements, moved, f"{each} x {elements} (at least)")
