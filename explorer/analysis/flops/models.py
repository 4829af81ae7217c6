"""Every op family's model, found by op name."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from types import ModuleType

from explorer.analysis.flops import attention, fused, matmul
from explorer.analysis.flops.call import Call, Work

GENERATED = "triton_"
"""What the names of Inductor's kernels begin with."""

FAMILIES = (
    "matmul",
    "convolution",
    "attention",
    "normalization",
    "pointwise",
    "reduction",
    "embedding",
    "optimizer",
    "fused",
)


@cache
def family_of() -> dict[str, ModuleType]:
    """The module of each modelled op."""
    modules = [import_module(f"explorer.analysis.flops.{name}") for name in FAMILIES]
    return {op: module for module in modules for op in module.OPS}


@cache
def _of_name(name: str) -> ModuleType | None:
    """The module of an op, or of a kernel that Inductor generated and named."""
    if module := family_of().get(name):
        return module
    if not name.startswith(GENERATED):
        return None
    return next((module for module in (attention, matmul, fused) if module.PATTERN.fullmatch(name)), None)


def work_of(call: Call) -> tuple[str, Work] | None:
    """Family and work of a call; None for an op without a model or with shapes that do not fit it."""
    module = _of_name(call.name)
    if module is None:
        return None
    try:
        work = module.work(call)
    except (IndexError, TypeError, ValueError):
        return None
    return None if work is None else (str(module.FAMILY), work)
