"""Rows of `collectives`: the profiler's communication ops joined to the calls that CollectiveRecorder saw."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from explorer.collectors.capture.coded_names import CodedNames
from explorer.collectors.capture.collectives import CollectiveCall, Group

I64 = npt.NDArray[np.int64]

_BY_OP = {
    "allreduce_": "all_reduce",
    "allreduce_coalesced_": "all_reduce",
    "all_reduce": "all_reduce",
    "all_reduce_": "all_reduce",
    "all_reduce_coalesced": "all_reduce",
    "allgather_": "all_gather",
    "_allgather_base_": "all_gather",
    "allgather_coalesced_": "all_gather",
    "allgather_into_tensor_coalesced_": "all_gather",
    "all_gather_into_tensor": "all_gather",
    "all_gather_into_tensor_out": "all_gather",
    "all_gather_into_tensor_coalesced": "all_gather",
    "reduce_scatter_": "reduce_scatter",
    "_reduce_scatter_base_": "reduce_scatter",
    "reduce_scatter_tensor_coalesced_": "reduce_scatter",
    "reduce_scatter_tensor": "reduce_scatter",
    "reduce_scatter_tensor_coalesced": "reduce_scatter",
    "alltoall_": "all_to_all",
    "alltoall_base_": "all_to_all",
    "all_to_all_single": "all_to_all",
    "broadcast_": "broadcast",
    "broadcast": "broadcast",
    "reduce_": "reduce",
    "gather_": "gather",
    "scatter_": "scatter",
    "send": "send",
    "recv_": "recv",
    "recv_any_source_": "recv",
    "barrier": "barrier",
}
_BY_WORK = {
    "all_reduce": "all_reduce",
    "all_gather": "all_gather",
    "_all_gather_base": "all_gather",
    "allgather_base": "all_gather",
    "reduce_scatter": "reduce_scatter",
    "_reduce_scatter_base": "reduce_scatter",
    "all_to_all": "all_to_all",
    "broadcast": "broadcast",
    "reduce": "reduce",
    "gather": "gather",
    "scatter": "scatter",
    "send": "send",
    "recv": "recv",
    "barrier": "barrier",
}
_SIZES = {
    "float": 4,
    "double": 8,
    "c10::Half": 2,
    "c10::BFloat16": 2,
    "long int": 8,
    "long": 8,
    "int": 4,
    "bool": 1,
}


_FACTS = (
    "group",
    "group_description",
    "group_size",
    "group_ranks",
    "sequence",
    "dtype",
    "element_count",
    "size_bytes",
    "peer",
)


def operation_of(name: str) -> str | None:
    """The operation of a communication op of the profiler, or None."""
    for prefix in ("c10d::", "_c10d_functional::"):
        if name.startswith(prefix):
            return _BY_OP.get(name.removeprefix(prefix))
    return None


def work_of(name: str) -> str | None:
    """The operation of a backend's own range (gloo:all_reduce), or None."""
    backend, colon, rest = name.partition(":")
    if not colon or backend not in ("gloo", "nccl", "mpi", "ucc", "xccl", "hccl"):
        return None
    return _BY_WORK.get(rest) or next((op for key, op in _BY_WORK.items() if key in rest), rest or None)


def communication_rows(names: CodedNames, parents: I64) -> tuple[dict[int, str], dict[int, str]]:
    """(host calls, backend work): row -> operation. Of nested communication ops the innermost one counts."""
    calls = names.found(operation_of)
    innermost = dict(calls)
    for row in calls:
        parent = int(parents[row])
        while parent >= 0:
            innermost.pop(parent, None)
            parent = int(parents[parent])
    works = names.found(work_of)
    return innermost, works


def pair_work(calls: dict[int, str], works: dict[int, str], starts: I64, parents: I64) -> dict[int, int]:
    """Backend work -> the call that started it.

    Work inside the call's own range (gloo sends and receives) is its call's. The rest runs in calling order on the
    backend's thread: as many works as calls are paired one by one, whatever they are called (gloo makes a reduce-scatter
    from an all-reduce); else in order per operation, from the end.
    """
    pairs: dict[int, int] = {}
    for work in works:
        above = int(parents[work])
        while above >= 0 and above not in calls:
            above = int(parents[above])
        if above >= 0:
            pairs[work] = above
    inside = set(pairs.values())
    waiting = sorted((row for row in calls if row not in inside), key=lambda row: starts[row])
    done = sorted((row for row in works if row not in pairs), key=lambda row: starts[row])
    if len(waiting) == len(done):
        return pairs | dict(zip(done, waiting))
    for operation in set(works.values()):
        asked = [row for row in waiting if calls[row] == operation]
        at = len(asked) - 1
        for row in reversed([row for row in done if works[row] == operation]):
            while at >= 0 and starts[asked[at]] > starts[row]:
                at -= 1
            if at >= 0:
                pairs[row] = asked[at]
                at -= 1
    return pairs


def collective_rows(
    calls: dict[int, str],
    works: dict[int, str],
    pairs: dict[int, int],
    starts: I64,
    ends: I64,
    threads: I64,
    event_id: I64,
    seen: Sequence[CollectiveCall],
    flights: Sequence[CollectiveCall],
    shapes: list[str | None],
    dtypes: list[str | None],
    groups: dict[str, Group],
) -> list[dict[str, Any]]:
    """Rows of the table. What no entry point reported (C++ callers) is what torch's flight recorder noted within the op;
    where that has nothing either, it comes from recorded shapes, and the group only where the process has a single one."""
    only_group = next(iter(groups.values())) if len(groups) == 1 else None
    noted = np.array([call.start_ns for call in flights], dtype=np.int64)
    by_thread: dict[int, list[CollectiveCall]] = {}
    for call in sorted(seen, key=lambda call: call.start_ns):
        by_thread.setdefault(call.native_id, []).append(call)
    rows: dict[int, dict[str, Any]] = {}
    for row, operation in calls.items():
        found = next(
            (
                call
                for call in by_thread.get(int(threads[row]), [])
                if call.start_ns <= starts[row] <= call.end_ns
            ),
            None,
        )
        if found is None:
            low, high = np.searchsorted(noted, (starts[row], ends[row]))
            within = flights[low:high]
            found = next(
                (call for call in within if call.operation == operation), within[0] if within else None
            )
        facts: dict[str, Any] = {"event_id": int(event_id[row]), "side": "host", "operation": operation}
        if found is not None:
            facts |= {name: getattr(found, name) for name in _FACTS}
        else:
            if only_group is not None:
                name, description, size, ranks = only_group
                facts |= {
                    "group": name,
                    "group_description": description,
                    "group_size": size,
                    "group_ranks": ranks,
                }
            facts |= _from_shapes(shapes[row], dtypes[row])
        rows[row] = facts
    for work, operation in works.items():
        asked = pairs.get(work)
        facts = dict(rows[asked]) if asked is not None else {"operation": operation}
        rows[work] = facts | {"event_id": int(event_id[work]), "side": "device"}
    return list(rows.values())


def _from_shapes(shapes: str | None, dtypes: str | None) -> dict[str, Any]:
    """Elements, bytes and type of the first tensor or tensor list among recorded inputs."""
    if shapes is None:
        return {}
    try:
        dims, kinds = json.loads(shapes), json.loads(dtypes or "[]")
    except ValueError:
        return {}
    for at, dim in enumerate(dims):
        if not dim:
            continue
        several = isinstance(dim[0], list)
        count = sum(_product(one) for one in dim) if several else _product(dim)
        kind = kinds[at] if at < len(kinds) else None
        if isinstance(kind, list):
            kind = kind[0] if kind else None
        size = _SIZES.get(str(kind))
        return {
            "element_count": count,
            "size_bytes": count * size if size else None,
            "dtype": str(kind) if kind and kind != "TensorList" else None,
        }
    return {}


def _product(dim: list[int]) -> int:
    result = 1
    for value in dim:
        result *= int(value)
    return result
