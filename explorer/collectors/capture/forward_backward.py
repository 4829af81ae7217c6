"""Which forward op each backward op differentiates.

First by the profiler's forward-backward flow pairs; then by (forward thread, sequence number): the LAST op on that
thread with the number before the node, because ops that need no gradient carry the next number too. AccumulateGrad has
neither: the engine runs it right after a graph parent, so it takes that one's forward op. Everything inside a node's
range inherits.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from explorer.collectors.capture.coded_names import CodedNames

I64 = npt.NDArray[np.int64]

EVALUATE = "autograd::engine::evaluate_function: "
ACCUMULATE = "torch::autograd::AccumulateGrad"
FORWARD_BACKWARD_FLOW = 1
"""libkineto::kLinkFwdBwd"""

BY_FLOW, BY_SEQUENCE, BY_PARENT, INHERITED = 1, 2, 3, 4


def resolve_forward(
    *,
    names: CodedNames,
    starts: I64,
    tracks: I64,
    parents: I64,
    depths: list[npt.NDArray[np.intp]],
    sequences: I64,
    forward_threads: I64,
    flow_ids: I64,
    flow_types: I64,
    flow_starts: npt.NDArray[np.bool_],
) -> tuple[I64, npt.NDArray[np.int8], npt.NDArray[np.bool_]]:
    """Forward row of every backward row (-1: none), how it was found, and which rows belong to the backward pass.

    Rows are sorted by (track, start, -end); `depths[d]` lists the rows at nesting depth d, outermost first. The
    forward thread numbers are the profiler's own small numbers, so they only tell nodes from plain ops here.
    """
    count = len(names)
    forward = np.full(count, -1, dtype=np.int64)
    method = np.zeros(count, dtype=np.int8)
    is_evaluate = names.where(lambda name: name.startswith(EVALUATE))
    in_backward = is_evaluate.copy()
    for rows in depths[1:]:
        in_backward[rows] |= in_backward[parents[rows]]

    _by_flow(forward, method, flow_ids, flow_types, flow_starts)
    _by_sequence(forward, method, starts, sequences, forward_threads, in_backward)
    # A node's own range takes what its evaluate_function found, and the other way round.
    found = np.flatnonzero((forward >= 0) & (parents >= 0))
    above = parents[found]
    lift = is_evaluate[above] & (forward[above] < 0)
    forward[above[lift]] = forward[found[lift]]
    method[above[lift]] = method[found[lift]]
    _accumulate(forward, method, names, tracks, is_evaluate)
    for rows in depths[1:]:
        above = parents[rows]
        take = (forward[rows] < 0) & (forward[above] >= 0) & in_backward[rows]
        forward[rows[take]] = forward[above[take]]
        method[rows[take]] = INHERITED
    return forward, method, in_backward


def _by_flow(
    forward: I64,
    method: npt.NDArray[np.int8],
    flow_ids: I64,
    flow_types: I64,
    flow_starts: npt.NDArray[np.bool_],
) -> None:
    ours = (flow_ids != 0) & (flow_types == FORWARD_BACKWARD_FLOW)
    heads = np.flatnonzero(ours & flow_starts)
    tails = np.flatnonzero(ours & ~flow_starts)
    if not len(heads) or not len(tails):
        return
    order = heads[np.argsort(flow_ids[heads], kind="stable")]
    keys = flow_ids[order]
    at = np.minimum(np.searchsorted(keys, flow_ids[tails]), len(keys) - 1)
    matched = keys[at] == flow_ids[tails]
    forward[tails[matched]] = order[at[matched]]
    method[tails[matched]] = BY_FLOW


def _by_sequence(
    forward: I64,
    method: npt.NDArray[np.int8],
    starts: I64,
    sequences: I64,
    forward_threads: I64,
    in_backward: npt.NDArray[np.bool_],
) -> None:
    nodes = np.flatnonzero((sequences >= 0) & (forward_threads != 0) & (forward < 0) & in_backward)
    if not len(nodes):
        return
    plain = np.flatnonzero((sequences >= 0) & (forward_threads == 0))
    if not len(plain):
        return
    plain = plain[np.lexsort((starts[plain], sequences[plain]))]
    first = np.searchsorted(sequences[plain], sequences[nodes], "left")
    last = np.searchsorted(sequences[plain], sequences[nodes], "right")
    times = starts[plain]
    for node, low, high in zip(nodes.tolist(), first.tolist(), last.tolist()):
        if low == high:
            continue
        at = low + int(np.searchsorted(times[low:high], starts[node], "left")) - 1
        if at >= low:
            forward[node] = plain[at]
            method[node] = BY_SEQUENCE


def _accumulate(
    forward: I64,
    method: npt.NDArray[np.int8],
    names: CodedNames,
    tracks: I64,
    is_evaluate: npt.NDArray[np.bool_],
) -> None:
    previous = -1
    track = -1
    for row in np.flatnonzero(is_evaluate).tolist():
        if tracks[row] != track:
            track, previous = int(tracks[row]), -1
        if names[row].endswith(ACCUMULATE):
            if previous >= 0 and forward[row] < 0:
                forward[row] = previous
                method[row] = BY_PARENT
        else:
            previous = int(forward[row])


def follow_to_own_line(forward: I64, inherits: npt.NDArray[np.bool_]) -> I64:
    """The row whose own line each row takes: its forward row, and from there on while that one inherits as well
    (double backward: backward of a backward op). -1 where the chain ends without one."""
    target = np.where(inherits, forward, -1)
    for _ in range(16):
        again = target >= 0
        again[again] = inherits[target[again]]
        if not np.any(again):
            break
        target[again] = forward[target[again]]
    return target
