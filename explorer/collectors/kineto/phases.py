"""Forward, backward, optimizer or data: from the names that PyTorch gives to the ranges around an event."""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt

from explorer.collectors.kineto.nesting import nearest

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

PHASES: tuple[str | None, ...] = (None, "backward", "optimizer", "data", "forward")
_BACKWARD = re.compile(
    r"autograd::engine::evaluate_function|\w*Backward\d*$|torch::autograd::AccumulateGrad$"
)
_OPTIMIZER = re.compile(r"Optimizer\.(?:step|zero_grad)")
_FORWARD = re.compile(r"nn\.Module: ")


def phase_of_name(name: str, category: str) -> int:
    """Number in PHASES that an event of this name opens for everything in it; 0 for none."""
    if category in ("op", "annotation", "collective") and _BACKWARD.match(name):
        return 1
    if category in ("op", "annotation") and _OPTIMIZER.match(name):
        return 2
    if category == "data":
        return 3
    if category == "python" and _FORWARD.match(name):
        return 4
    return 0


def phases(
    parent: npt.NDArray[np.int32], opened: npt.NDArray[np.int8], is_forward: Flags
) -> npt.NDArray[np.int8]:
    """Phase number of every event: the strongest of what it and its enclosers open, in the order of PHASES.

    `is_forward` marks ops that some backward op differentiates.
    """
    result = np.zeros(len(parent), np.int8)
    for number in (4, 3, 2, 1):
        marked = opened == number
        if number == 4:
            marked |= is_forward
        if marked.any():
            result[nearest(parent, marked, itself=True) >= 0] = number
    return result
