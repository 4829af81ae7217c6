"""The phase of every host event: forward, backward, optimizer, data, evaluation or other."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from explorer.collectors.capture.coded_names import CodedNames
from explorer.collectors.capture.nesting import enclosing_ops

I64 = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

PHASE_NAMES = ("other", "forward", "backward", "optimizer", "data", "evaluation")
OTHER, FORWARD, BACKWARD, OPTIMIZER, DATA, EVALUATION = range(6)


_MODEL_OPS = frozenset(
    "aten::" + name
    for name in [
        "linear",
        "matmul",
        "mm",
        "bmm",
        "addmm",
        "baddbmm",
        "conv1d",
        "conv2d",
        "conv3d",
        "convolution",
        "conv_transpose2d",
        "embedding",
        "embedding_bag",
        "layer_norm",
        "native_layer_norm",
        "batch_norm",
        "group_norm",
        "rms_norm",
        "scaled_dot_product_attention",
        "gelu",
        "relu",
        "silu",
        "lstm",
        "gru",
        "softmax",
        "log_softmax",
        "einsum",
    ]
)
"""Ops that only a model runs: without gradients they mean evaluation, where an in-place update means bookkeeping."""


def phases_of(
    names: CodedNames,
    categories: CodedNames,
    tracks: I64,
    starts: I64,
    parents: I64,
    depths: list[npt.NDArray[np.intp]],
    sequences: I64,
    in_backward: Bools,
) -> npt.NDArray[np.int8]:
    """Index into PHASE_NAMES for each row; rows sorted by (track, start).

    Optimizer ranges are named by torch (`Optimizer.step#`, `Optimizer.zero_grad#`); the backward pass is what the
    autograd engine evaluates; data is the DataLoader's range. Of the rest, ops that autograd numbered ran with
    gradients on and are forward. A run of ops it did not number is evaluation where it holds a model's op; after the
    backward pass it is part of the optimizer phase (gradient clipping, EMA, schedulers); else it is forward.
    """
    phase = np.full(len(names), -1, dtype=np.int8)
    is_op = categories.where(lambda category: category == "op")
    phase[categories.where(lambda category: category == "data")] = DATA
    phase[names.where(lambda name: name.startswith("Optimizer."))] = OPTIMIZER
    phase[in_backward & (phase < 0)] = BACKWARD
    for rows in depths[1:]:
        above = phase[parents[rows]]
        take = (phase[rows] < 0) & (above >= OPTIMIZER)
        phase[rows[take]] = above[take]
    enclosing = enclosing_ops(parents, depths, is_op)
    _top_ops(phase, names, tracks, starts, np.sort(starts[in_backward]), enclosing, sequences, is_op)
    for rows in depths[1:]:
        above = phase[enclosing[rows]]
        take = (phase[rows] < 0) & is_op[rows] & (enclosing[rows] >= 0)
        phase[rows[take]] = above[take]
    phase[phase < 0] = OTHER
    return phase


def _top_ops(
    phase: npt.NDArray[np.int8],
    names: CodedNames,
    tracks: I64,
    starts: I64,
    backward_starts: I64,
    enclosing: I64,
    sequences: I64,
    is_op: Bools,
) -> None:
    """Phase of the ops that no other op encloses, run by run. `backward_starts`: of all threads, since a device's
    backward pass runs on one of autograd's own."""
    # An optimizer's range ends a run even where it holds no op (zero_grad that drops gradients).
    counts = is_op | names.where(lambda name: name.startswith("Optimizer."))
    top = np.flatnonzero(counts & (enclosing < 0))
    run: list[int] = []
    holds_model_op = False
    before, last_ns = FORWARD, 0
    track = -1

    def ran_backward(since_ns: int, until_ns: int) -> bool:
        low, high = np.searchsorted(backward_starts, (since_ns, until_ns))
        return bool(high > low)

    def close() -> None:
        nonlocal run, holds_model_op
        if run:
            if holds_model_op:
                phase[run] = EVALUATION
            else:
                phase[run] = OPTIMIZER if before in (BACKWARD, OPTIMIZER) else FORWARD
            run, holds_model_op = [], False

    for row in top.tolist():
        if tracks[row] != track:
            close()
            track, before, last_ns = tracks[row], FORWARD, int(starts[row])
        if before == FORWARD and ran_backward(last_ns, int(starts[row])):
            close()
            before = BACKWARD
        last_ns = int(starts[row])
        known = int(phase[row])
        if known >= 0:
            close()
            before = known
        elif sequences[row] >= 0 or names[row].startswith(("Torch-Compiled Region", "CompiledFunction")):
            close()
            phase[row] = before = FORWARD
        else:
            run.append(row)
            holds_model_op = holds_model_op or names[row] in _MODEL_OPS
    close()
