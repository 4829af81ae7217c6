"""Which call launched a device row, and which op is responsible for it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from explorer.collectors.capture.coded_names import CodedNames
from explorer.collectors.capture.nesting import enclosing_ops

I64 = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


def links(
    categories: CodedNames,
    on_device: Bools,
    correlation: I64,
    linked: I64,
    parents: I64,
    depths: list[npt.NDArray[np.intp]],
) -> tuple[I64, I64]:
    """(launching host row, responsible op row) of each row, -1 where unknown.

    An op's correlation id is what device rows call linked id; a runtime call and what it enqueued share theirs.
    """
    count = len(categories)
    launch = np.full(count, -1, dtype=np.int64)
    is_op = categories.where(lambda c: c == "op")
    is_annotation = categories.where(lambda c: c == "annotation")
    is_runtime = categories.where(lambda c: c in ("runtime", "sync")) & ~on_device
    op = enclosing_ops(parents, depths, is_op)
    op[on_device | is_op] = -1
    if not np.any(on_device) and not np.any(is_runtime):
        return launch, op
    op_at = {c: i for i, c in zip(np.flatnonzero(is_op).tolist(), correlation[is_op].tolist())}
    ranges = is_annotation & ~on_device
    range_at = {c: i for i, c in zip(np.flatnonzero(ranges).tolist(), correlation[ranges].tolist()) if c}
    call_at = {
        c: i for i, c in zip(np.flatnonzero(is_runtime).tolist(), correlation[is_runtime].tolist()) if c
    }
    for row in np.flatnonzero(on_device | is_runtime).tolist():
        if linked[row]:
            op[row] = op_at.get(int(linked[row]), op[row])
        if is_annotation[row] and on_device[row]:
            # A range of the program, drawn on the device around what was enqueued in it.
            launch[row] = range_at.get(int(linked[row] or correlation[row]), -1)
        elif on_device[row]:
            call = call_at.get(int(correlation[row]), -1)
            launch[row] = call if call >= 0 else op[row]
            if op[row] < 0 and call >= 0:
                op[row] = op[call]
    return launch, op


def has_correlation(categories: CodedNames, on_device: Bools, correlation: I64) -> Bools:
    """Op numbers restart per window and mean nothing outside: only runtime and device ids are kept."""
    runtime = categories.where(lambda c: c in ("runtime", "sync"))
    return (on_device | runtime) & (correlation != 0)
