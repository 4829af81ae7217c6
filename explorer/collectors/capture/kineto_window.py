"""One profiler session and its rows as columns, read with trace_activities(): the fastest pure-Python route.

Per event 2.3 us in stop() with trace_only and about 3.5 us to read eleven attributes and the metadata; events() would
take 28 us. Times are absolute Unix nanoseconds.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from operator import methodcaller
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import torch

QUIET_LEVEL = "6"
"""KINETO_LOG_LEVEL above every message, the start/stop probes on stderr included."""

I64 = npt.NDArray[np.int64]


@dataclass(slots=True)
class RawWindow:
    """Rows of one window in the order the profiler gave them. Flow 0 means none; linked 0 means none."""

    names: list[str]
    kinds: list[str]
    starts: I64
    durations: I64
    device_ids: I64
    resource_ids: I64
    correlation_ids: I64
    linked_ids: I64
    flow_ids: I64
    flow_starts: npt.NDArray[np.bool_]
    flow_types: I64
    metadata: list[str]

    def __len__(self) -> int:
        return len(self.names)


def quiet() -> None:
    """Keep Kineto from writing to the program's stderr. Must run before the first session of the process."""
    os.environ.setdefault("KINETO_LOG_LEVEL", QUIET_LEVEL)


def make_profiler(
    activities: list[Any],
    *,
    shapes: bool,
    memory: bool,
    all_threads: bool,
    compat: bool,
    stacks: bool = False,
    device: dict[str, Any] | None = None,
) -> torch.profiler.profile:
    """A torch.profiler session without modules and flops, and without stacks unless they are the only source of lines: all
    of them cost much and give nothing here.

    `device` replaces activities, configuration and trace handler by those of a device's own profiler.
    """
    import torch

    wanted: dict[str, Any] = {
        # The tree of events, which holds the stacks, is made for compatible sessions only.
        "trace_only": not (compat or stacks),
        "profile_all_threads": all_threads,
        "enable_cuda_sync_events": True,
    }
    own: dict[str, Any] = {
        "activities": activities,
        "experimental_config": None if device else experimental_config(wanted),
    }
    return torch.profiler.profile(
        record_shapes=shapes,
        profile_memory=memory,
        with_stack=stacks,
        acc_events=False,
        **(own | (device or {})),
    )


def experimental_config(wanted: dict[str, Any]) -> Any:
    """The wanted options, without those this version of torch does not know."""
    from torch._C._profiler import _ExperimentalConfig

    options: dict[str, Any] = dict(wanted)
    while True:
        try:
            return _ExperimentalConfig(**options)
        except TypeError:
            if not options:
                return None
            options.popitem()


def read_stacks(profiler: torch.profiler.profile) -> tuple[list[Any], dict[int, int]]:
    """Roots of the event tree of a stopped session with stacks, and the native thread ids by the time (ns) at which a
    Python call of the thread began."""
    results = getattr(getattr(profiler, "profiler", None), "kineto_results", None)
    if results is None:
        return [], {}
    native_ids = {
        row.timestamp(): row.resource_id()
        for row in results.trace_activities()
        if row.type() == "python_function"
    }
    return results.experimental_event_tree(), native_ids


def read_window(profiler: torch.profiler.profile, *, without_python: bool = False) -> RawWindow:
    """Rows of a stopped session; empty where the session was lost. `without_python` leaves the Python calls out."""
    inner = getattr(profiler, "profiler", None)
    results = getattr(inner, "kineto_results", None)
    rows = results.trace_activities() if results is not None else []
    if without_python:
        rows = [row for row in rows if row.type() != "python_function"]
    count = len(rows)

    def integers(name: str) -> I64:
        read = methodcaller(name)
        try:
            return np.fromiter(map(read, rows), dtype=np.int64, count=count)
        except OverflowError:
            # Ids are unsigned in C++: device -1 and huge correlation ids wrap around.
            values = map(read, rows)
            return np.array([v - (1 << 64) if v >= 1 << 63 else v for v in values], dtype=np.int64)

    return RawWindow(
        names=list(map(methodcaller("name"), rows)),
        kinds=list(map(methodcaller("type"), rows)),
        starts=integers("timestamp"),
        durations=integers("duration"),
        device_ids=integers("device_id"),
        resource_ids=integers("resource_id"),
        correlation_ids=integers("correlation_id"),
        linked_ids=integers("linked_correlation_id"),
        flow_ids=integers("flow_id"),
        flow_starts=np.fromiter(map(methodcaller("flow_start"), rows), dtype=bool, count=count),
        flow_types=integers("flow_type"),
        metadata=list(map(methodcaller("metadata_json"), rows)),
    )
