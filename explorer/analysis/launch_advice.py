"""How a program on this run's device and framework launches less: advice that several rules give."""

from __future__ import annotations

from explorer.analysis.rule_context import RuleContext

_REPLAYED = {"cuda": "CUDA graphs", "hip": "HIP graphs"}
"""Graphs that torch.compile's mode 'reduce-overhead' replays, by device type."""


def is_jax(context: RuleContext) -> bool:
    """Whether the program's ops are JAX's and none are PyTorch's."""
    return context.holds("category = 'op' AND starts_with(name, 'PjitFunction(')") and not context.holds(
        "category = 'op' AND starts_with(name, 'aten::')"
    )


def graphs(context: RuleContext) -> str:
    """What graphs of recorded launches are called on the device that the scope's rank works on; empty where there are none."""
    rows = context.rows(
        f"""SELECT t.device_type FROM ({context.kinds}) k JOIN tracks t ON t.rank = {context.scope.rank} AND t.track_id = k.track_id
        WHERE t.kind <> 'thread' AND k.category = 'kernel' GROUP BY t.device_type ORDER BY sum(k.events) DESC, t.device_type LIMIT 1"""
    )
    return _REPLAYED.get(str(rows[0]["device_type"]) if rows else "cuda", "")


def compile_advice(context: RuleContext) -> str:
    """To compile the step, in half a sentence."""
    if is_jax(context):
        return "put the whole step under one jax.jit (several steps under jax.lax.scan)"
    replayed = graphs(context)
    how = f"torch.compile, mode='reduce-overhead' replays {replayed}" if replayed else "torch.compile"
    return f"compile the model ({how})"
