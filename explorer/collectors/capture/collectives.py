"""Collectives on every backend, seen at the torch.distributed entry points: group, operation, dtype, sizes, sequence.

The profiler names these only for NCCL; gloo, MPI and new backends report nothing but a range. While recording, the public
functions of torch.distributed (which DDP's Python side, ZeRO and pipelines use) note what is communicated; the op of the
profiler that began inside the call is joined to it by thread and time.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from explorer.collectors.capture.import_watch import ImportWatch
from explorer.collectors.capture.pinned_lines import NO_PINS, PinnedLines

# Function -> (operation, name of the argument that is sent, name of the argument that is received).
_FUNCTIONS: dict[str, tuple[str, str | None, str | None]] = {
    "all_reduce": ("all_reduce", "tensor", "tensor"),
    "all_reduce_coalesced": ("all_reduce", "tensors", "tensors"),
    "broadcast": ("broadcast", "tensor", "tensor"),
    "reduce": ("reduce", "tensor", "tensor"),
    "all_gather": ("all_gather", "tensor", "tensor_list"),
    "all_gather_into_tensor": ("all_gather", "input_tensor", "output_tensor"),
    "all_gather_single": ("all_gather", "input_tensor", "output_tensor"),
    "gather": ("gather", "tensor", "gather_list"),
    "scatter": ("scatter", "scatter_list", "tensor"),
    "reduce_scatter": ("reduce_scatter", "input_list", "output"),
    "reduce_scatter_tensor": ("reduce_scatter", "input", "output"),
    "reduce_scatter_single": ("reduce_scatter", "input", "output"),
    "all_to_all": ("all_to_all", "input_tensor_list", "output_tensor_list"),
    "all_to_all_single": ("all_to_all", "input", "output"),
    "send": ("send", "tensor", None),
    "isend": ("send", "tensor", None),
    "recv": ("recv", None, "tensor"),
    "irecv": ("recv", None, "tensor"),
    "barrier": ("barrier", None, None),
}

Group = tuple[str | None, str | None, int | None, str | None]
"""Name, description, number of ranks, JSON list of the ranks."""


@dataclass(slots=True)
class CollectiveCall:
    """One call: when, on which thread, and what it moves. Sizes are of this rank."""

    native_id: int
    start_ns: int
    end_ns: int
    operation: str
    group: str | None
    group_description: str | None
    group_size: int | None
    group_ranks: str | None
    sequence: int | None
    dtype: str | None
    element_count: int | None
    size_bytes: int | None
    peer: int | None


class CollectiveRecorder:
    """Wraps the entry points when torch.distributed is used; active while `enabled`."""

    def __init__(self, pins: PinnedLines = NO_PINS) -> None:
        self.enabled = False
        self._pins = pins
        self._calls: list[CollectiveCall] = []
        self._undo: list[tuple[Any, str, Any, Any]] = []
        self._depth = threading.local()
        self._groups: dict[int, Group] = {}
        self._remaps: dict[Any, Any] = {}
        self._watches = [
            ImportWatch("torch.distributed.distributed_c10d", self._wrap),
            ImportWatch("torch.distributed._functional_collectives", self._remap),
        ]

    def start(self) -> None:
        for watch in self._watches:
            watch.start()

    def stop(self) -> None:
        for watch in self._watches:
            watch.stop()
        for owner, name, ours, original in self._undo:
            if getattr(owner, name, None) is ours:
                setattr(owner, name, original)
            self._remaps.pop(ours, None)
        self._undo.clear()
        self._remaps = {}

    def groups(self) -> dict[str, Group]:
        """Every process group of this process, by name."""
        module: Any = sys.modules.get("torch.distributed.distributed_c10d")
        try:
            known = [self._group(module, group) for group in list(module._world.pg_map)]
        except Exception:
            return {}
        return {str(group[0]): group for group in known}

    def take(self) -> list[CollectiveCall]:
        calls, self._calls = self._calls, []
        return calls

    def _wrap(self, module: ModuleType) -> None:
        package = sys.modules.get("torch.distributed")
        for name, (operation, sent, received) in _FUNCTIONS.items():
            original = getattr(module, name, None)
            if original is None:
                continue
            wrapper = self._wrapper(module, original, operation, sent, received)
            for owner in (module, package):
                if owner is not None and getattr(owner, name, None) is original:
                    setattr(owner, name, wrapper)
                    self._undo.append((owner, name, wrapper, original))

    def _remap(self, module: ModuleType) -> None:
        """Dynamo rewrites torch's own entry points when it compiles a call of one: tell it that ours are the same."""
        self._remaps = module.traceable_collective_remaps
        for _, _, ours, original in self._undo:
            # The module may have been imported before the wrappers or after them.
            if ours in self._remaps:
                self._remaps[original] = self._remaps[ours]
            elif original in self._remaps:
                self._remaps[ours] = self._remaps[original]

    def _wrapper(
        self,
        module: ModuleType,
        original: Callable[..., Any],
        operation: str,
        sent: str | None,
        received: str | None,
    ) -> Callable[..., Any]:
        import functools
        import inspect

        try:
            parameters = list(inspect.signature(original).parameters)
        except (TypeError, ValueError):
            parameters = []
        recorder = self

        @functools.wraps(original)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            if not recorder.enabled or getattr(recorder._depth, "inside", False):
                return original(*args, **kwargs)
            recorder._depth.inside = True
            pinned = recorder._pins.begin()
            begin = time.time_ns()
            try:
                return original(*args, **kwargs)
            finally:
                recorder._depth.inside = False
                recorder._pins.end(pinned)
                try:
                    given = dict(zip(parameters, args)) | kwargs
                    recorder._note(module, given, operation, sent, received, begin)
                except Exception:
                    # Unknown argument types of another version: the op itself is still recorded.
                    pass

        return wrapper

    def _note(
        self,
        module: Any,
        given: dict[str, Any],
        operation: str,
        sent: str | None,
        received: str | None,
        begin: int,
    ) -> None:
        end = time.time_ns()
        group = given.get("group") or module._get_default_group()
        name, description, size, ranks = self._group(module, group)
        count, size_bytes, dtype = _measure(given.get(sent) if sent else given.get(received or ""))
        # The peers' convention: bytes of the output for a gather, of the input for everything else.
        if operation == "all_gather":
            size_bytes = _measure(given.get(received or ""))[1]
        peer = given.get("dst", given.get("src", given.get("group_dst", given.get("group_src"))))
        self._calls.append(
            CollectiveCall(
                threading.get_native_id(),
                begin,
                end,
                operation,
                name,
                description,
                size,
                ranks,
                _sequence(group),
                dtype,
                count,
                size_bytes,
                peer
                if operation in ("send", "recv", "broadcast", "reduce") and isinstance(peer, int)
                else None,
            )
        )

    def _group(self, module: Any, group: Any) -> Group:
        known = self._groups.get(id(group))
        if known is None:
            name = getattr(group, "group_name", None)
            description = getattr(group, "group_desc", None)
            size = int(group.size())
            try:
                ranks = json.dumps([int(rank) for rank in module.get_process_group_ranks(group)])
            except Exception:
                ranks = None
            known = self._groups[id(group)] = (
                str(name) if name is not None else None,
                str(description) if description is not None else None,
                size,
                ranks,
            )
        return known


def _sequence(group: Any) -> int | None:
    try:
        return int(group._get_sequence_number_for_group())
    except Exception:
        return None


def _measure(value: Any) -> tuple[int | None, int | None, str | None]:
    """(elements, bytes, dtype) of a tensor or of a list of tensors."""
    if value is None:
        return None, None, None
    tensors = list(value) if isinstance(value, list | tuple) else [value]
    if not tensors:
        return 0, 0, None
    count = sum(int(tensor.numel()) for tensor in tensors)
    size = sum(int(tensor.numel()) * int(tensor.element_size()) for tensor in tensors)
    return count, size, str(tensors[0].dtype).removeprefix("torch.")
