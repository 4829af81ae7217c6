"""One profiler session and its rows as columns, read with trace_activities(): the fastest pure-Python route.

Per event 2.3 us in stop() with trace_only and about 3.5 us to read eleven attributes and the metadata; events() would
take 28 us. Times are absolute Unix nanoseconds.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
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
    device: dict[str, Any] | None = None,
) -> torch.profiler.profile:
    """A torch.profiler session without stacks, modules and flops: all of them cost much and give nothing here.

    `device` replaces activities, configuration and trace handler by those of a device's own profiler.
    """
    import torch

    wanted: dict[str, Any] = {
        "trace_only": not compat,
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
        with_stack=False,
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


def read_window(profiler: torch.profiler.profile) -> RawWindow:
    """Rows of a stopped session; empty where the session was lost."""
    inner = getattr(profiler, "profiler", None)
    results = getattr(inner, "kineto_results", None)
    rows = results.trace_activities() if results is not None else []
    count = len(rows)

    def integers(values: Any) -> I64:
        # Ids are unsigned in C++: device -1 and huge correlation ids wrap around instead of raising.
        array = list(values)
        try:
            return np.array(array, dtype=np.int64) if count else np.zeros(0, np.int64)
        except OverflowError:
            return np.array([v - (1 << 64) if v >= 1 << 63 else v for v in array], dtype=np.int64)

    return RawWindow(
        names=[row.name() for row in rows],
        kinds=[row.type() for row in rows],
        starts=integers(row.timestamp() for row in rows),
        durations=integers(row.duration() for row in rows),
        device_ids=integers(row.device_id() for row in rows),
        resource_ids=integers(row.resource_id() for row in rows),
        correlation_ids=integers(row.correlation_id() for row in rows),
        linked_ids=integers(row.linked_correlation_id() for row in rows),
        flow_ids=integers(row.flow_id() for row in rows),
        flow_starts=np.array([row.flow_start() for row in rows], dtype=bool),
        flow_types=integers(row.flow_type() for row in rows),
        metadata=[row.metadata_json() for row in rows],
    )
