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
"""Ops that only a model runs: without gradients they mean evaluation."""

_READ_OUT = frozenset(
    "aten::" + name for name in ("item", "_local_scalar_dense", "is_nonzero", "equal", "allclose", "nonzero")
)
"""Ops that bring a value to Python: a loss to be printed, a metric."""


def _updates(name: str) -> bool:
    """Whether an op changes tensors in place: after a backward pass that is bookkeeping of the optimizer (clipping, EMA)."""
    return name.startswith(("aten::_foreach_", "aten::_amp_")) or (
        name.endswith("_") and name != "aten::detach_"
    )


def phases_of(
    names: CodedNames,
    categories: CodedNames,
    tracks: I64,
    starts: I64,
    parents: I64,
    depths: list[npt.NDArray[np.intp]],
    sequences: I64,
    in_backward: Bools,
    before: dict[int, int] | None = None,
) -> npt.NDArray[np.int8]:
    """Index into PHASE_NAMES for each row; rows sorted by (track, start).

    Optimizer ranges are named by torch (`Optimizer.step#`, `Optimizer.zero_grad#`); the backward pass is what the
    autograd engine evaluates; data is the DataLoader's range. Of the rest, ops that autograd numbered ran with
    gradients on and are forward. Of a run of ops that it did not number:
    - after the backward pass or the optimizer, all up to the next optimizer range, or else up to the last op that updates
      tensors in place before a model's op, is part of the optimizer phase (gradient clipping, EMA, schedulers);
    - what is left is evaluation from there on where it holds a model's op;
    - else it builds what the next forward pass takes, and is forward, after what reads values out (a loss, a metric), which
      is other; where nothing came before it is forward as a whole.

    `before`: by track, the phase that the window before ended with; updated to what this one ends with.
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
    backward_starts = np.sort(starts[in_backward])
    before = before if before is not None else {}
    _top_ops(phase, names, tracks, starts, backward_starts, enclosing, sequences, is_op, before)
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
    carried: dict[int, int],
) -> None:
    """Phase of the ops that no other op encloses, run by run. `backward_starts`: of all threads, since a device's
    backward pass runs on one of autograd's own."""
    # An optimizer's range ends a run even where it holds no op (zero_grad that drops gradients).
    counts = is_op | names.where(lambda name: name.startswith("Optimizer."))
    top = np.flatnonzero(counts & (enclosing < 0))
    run: list[int] = []
    before, last = FORWARD, 0
    track = -1
    # So much of the backward pass had begun before each op.
    begun = np.searchsorted(backward_starts, starts[top]).tolist()

    def close(following: int = OTHER) -> None:
        nonlocal run
        if run:
            _run(phase, names, run, before, following)
            run = []

    for row, ran in zip(top.tolist(), begun):
        if tracks[row] != track:
            close()
            if track >= 0:
                carried[track] = before
            track, last = int(tracks[row]), ran
            before = carried.get(track, FORWARD)
        if before == FORWARD and ran > last:
            close()
            before = BACKWARD
        last = ran
        known = int(phase[row])
        if known >= 0:
            close(known)
            before = known
        elif sequences[row] >= 0 or names[row].startswith(("Torch-Compiled Region", "CompiledFunction")):
            close(FORWARD)
            phase[row] = before = FORWARD
        else:
            run.append(row)
    close()
    if track >= 0:
        carried[track] = before


def _run(phase: npt.NDArray[np.int8], names: CodedNames, run: list[int], before: int, following: int) -> None:
    """Phases of one run of ops that autograd did not number, between two phases."""
    model = next((at for at, row in enumerate(run) if names[row] in _MODEL_OPS), None)
    updated = 0
    if before in (BACKWARD, OPTIMIZER):
        if following == OPTIMIZER and model is None:
            updated = len(run)
        else:
            # What updates after a model's op belongs to the model (running statistics, a cache).
            early = run if model is None else run[:model]
            updated = 1 + max((at for at, row in enumerate(early) if _updates(names[row])), default=-1)
    phase[run[:updated]] = OPTIMIZER
    rest = run[updated:]
    if model is not None:
        phase[rest] = EVALUATION
    elif before not in (BACKWARD, OPTIMIZER):
        phase[rest] = FORWARD
    else:
        read = 1 + max((at for at, row in enumerate(rest) if names[row] in _READ_OUT), default=-1)
        phase[rest[:read]] = OTHER
        # At the end of a window nobody knows what follows: most likely the next step's forward pass.
        phase[rest[read:]] = FORWARD
