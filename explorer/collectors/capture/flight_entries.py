"""What torch's flight recorder keeps of every collective: also of those that C++ asks for (DDP's reducer, functional
collectives), which pass no entry point of torch.distributed.

The recorder runs in every process with a process group (gloo and NCCL); reading it changes nothing. Its times are Unix
nanoseconds, taken inside the op that the profiler sees. It is a ring: what a long window has pushed out is not there.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from explorer.collectors.capture.collectives import CollectiveCall, Group

BUFFER = "TORCH_FR_BUFFER_SIZE"
BUFFER_ENTRIES = 10_000
"""Calls that the ring holds where it starts after the recording does; torch's own choice is 2,000."""

_READERS = ("_dump_fr_trace_json", "_dump_nccl_trace_json")
_DTYPES = {
    "Float": "float32",
    "Double": "float64",
    "Half": "float16",
    "Long": "int64",
    "Int": "int32",
    "Short": "int16",
    "Char": "int8",
    "Byte": "uint8",
    "ComplexFloat": "complex64",
    "ComplexDouble": "complex128",
}


class FlightEntries:
    """Reads the recorder of this process where it has one."""

    def __init__(self) -> None:
        self._enlarged = False

    def start(self) -> None:
        """Have the ring hold a whole window, where it does not exist yet and nobody has chosen its size."""
        distributed = sys.modules.get("torch.distributed")
        if BUFFER not in os.environ and not getattr(distributed, "is_initialized", bool)():
            os.environ[BUFFER] = str(BUFFER_ENTRIES)
            self._enlarged = True

    def stop(self) -> None:
        if self._enlarged and os.environ.get(BUFFER) == str(BUFFER_ENTRIES):
            del os.environ[BUFFER]
        self._enlarged = False

    def calls(self, since_ns: int, until_ns: int, groups: dict[str, Group]) -> list[CollectiveCall]:
        """The calls of a time, in order. `groups`: what is known of the process groups, by name."""
        native: Any = sys.modules.get("torch._C._distributed_c10d")
        found = []
        for name in _READERS if native is not None else ():
            try:
                entries = json.loads(getattr(native, name)()).get("entries", [])
                found += [
                    _call(entry, groups)
                    for entry in entries
                    if since_ns <= entry["time_created_ns"] < until_ns
                ]
            except Exception:
                # No such reader, or another form than is known: the calls stay with what their entry point said.
                continue
        return sorted(found, key=lambda call: call.start_ns)


def _call(entry: dict[str, Any], groups: dict[str, Group]) -> CollectiveCall:
    name, description = entry["process_group"]
    _, _, size, ranks = groups.get(name, (None, None, None, None))
    operation = entry["profiling_name"].partition(":")[2].partition(" ")[0]
    count, size_bytes, dtype = _measured(entry["input_sizes"], entry["input_dtypes"])
    if "gather" in operation:
        size_bytes = _measured(entry["output_sizes"], entry["output_dtypes"])[1]
    return CollectiveCall(
        native_id=0,
        start_ns=entry["time_created_ns"],
        end_ns=entry["time_created_ns"],
        operation=operation,
        group=name,
        group_description=description,
        group_size=size,
        group_ranks=ranks,
        sequence=entry["p2p_seq_id"] if entry["is_p2p"] else entry["collective_seq_id"],
        dtype=dtype,
        element_count=count,
        size_bytes=size_bytes,
        peer=None,
    )


def _measured(sizes: list[list[int]], dtypes: list[str]) -> tuple[int | None, int | None, str | None]:
    """(elements, bytes, dtype) of tensors given by their sizes."""
    if not sizes or not dtypes:
        return None, None, None
    import math

    import torch

    dtype = _DTYPES.get(dtypes[0], dtypes[0].lower())
    count = sum(math.prod(dims) for dims in sizes)
    width = getattr(getattr(torch, dtype, None), "itemsize", None)
    return count, count * width if width else None, dtype
