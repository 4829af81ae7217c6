"""Which call chain every thread was executing over a window: looked up by time, and as rows of host_states."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from explorer.collectors.capture.module_python import module_python_ns
from explorer.collectors.lines.records import SKIPPED_CHUNK
from explorer.collectors.lines.replay import ThreadStates

if TYPE_CHECKING:
    import pyarrow as pa

    from explorer.collectors.capture.tracks import Tracks

I64 = npt.NDArray[np.int64]


class HostStates:
    """States of every thread over the window, ready to be looked up by time."""

    def __init__(
        self, states: Sequence[ThreadStates], carried: dict[int, int], start_ns: int, end_ns: int
    ) -> None:
        """`carried`: node that each thread was at when the window began; updated to where it is at the end."""
        self.by_thread: dict[int, tuple[I64, I64]] = {}
        self.modules: dict[int, tuple[I64, I64]] = {}
        self.open_calls: dict[int, I64] = {}
        self.skipped: dict[int, I64] = {}
        seen = set()
        for thread in states:
            seen.add(thread.native_id)
            if len(thread.module_times):
                self.modules[thread.native_id] = (
                    np.maximum.accumulate(thread.module_times),
                    thread.module_keys,
                )
                self.open_calls[thread.native_id] = thread.module_depths
            if thread.skipped_times is not None:
                self.skipped[thread.native_id] = np.maximum.accumulate(thread.skipped_times)
            before = carried.get(thread.native_id, 0)
            times = np.concatenate([np.array([start_ns], dtype=np.int64), thread.times])
            nodes = np.concatenate([np.array([before], dtype=np.int64), thread.nodes])
            # A clock that stepped back must not break the search.
            times = np.maximum.accumulate(times)
            if thread.native_id in self.by_thread:
                old_times, old_nodes = self.by_thread[thread.native_id]
                times, nodes = np.concatenate([old_times, times[1:]]), np.concatenate([old_nodes, nodes[1:]])
            self.by_thread[thread.native_id] = (times, nodes)
            carried[thread.native_id] = 0 if thread.finished else int(nodes[-1])
        for native_id, node in carried.items():
            if native_id not in seen and node:
                self.by_thread[native_id] = (
                    np.array([start_ns], dtype=np.int64),
                    np.array([node], dtype=np.int64),
                )
        self.end_ns = end_ns

    def node_at(self, native_id: int, times: I64) -> I64:
        """Node at each time; 0 where nothing was recorded."""
        known = self.by_thread.get(native_id)
        if known is None:
            return np.zeros(len(times), dtype=np.int64)
        at = np.searchsorted(known[0], times, "right") - 1
        return np.where(at >= 0, known[1][np.maximum(at, 0)], 0)

    def module_at(self, native_id: int, times: I64) -> I64:
        """Key of the innermost nn.Module at each time; 0 where there is none."""
        known = self.modules.get(native_id)
        if known is None:
            return np.zeros(len(times), dtype=np.int64)
        at = np.searchsorted(known[0], times, "right") - 1
        return np.where(at >= 0, known[1][np.maximum(at, 0)], 0)

    def _skipped_calls(self, native_id: int, start: I64, end: I64) -> I64:
        """Calls in each interval that were traced but not recorded, by the times of some of them."""
        times = self.skipped.get(native_id, np.zeros(0, np.int64))
        return SKIPPED_CHUNK * (np.searchsorted(times, end) - np.searchsorted(times, start))

    def _module_calls(self, native_id: int, start: I64, end: I64) -> npt.NDArray[np.float64]:
        """Calls of nn.Modules in each interval: half its records of their beginnings and ends."""
        times, _ = self.modules.get(native_id, (np.zeros(0, np.int64), None))
        return (np.searchsorted(times, end) - np.searchsorted(times, start)).astype(np.float64) / 2

    def _module_python(self, native_id: int, start: I64, end: I64, ops: tuple[I64, I64]) -> I64:
        """Python time of modules without lines of their own in each interval."""
        none = np.zeros(0, np.int64)
        times, _ = self.modules.get(native_id, (none, none))
        return module_python_ns(start, end, (times, self.open_calls.get(native_id, none)), ops)

    def rows(
        self, tracks: Tracks, stacks: I64, sites: I64, ops: Mapping[int, tuple[I64, I64]]
    ) -> pa.Table | None:
        """Rows of host_states: consecutive equal states merged, empty ones dropped.

        `ops`: beginnings and ends of the ops on each track, by its id.
        """
        import pyarrow as pa

        parts = []
        none = np.zeros(0, np.int64)
        for native_id, (times, nodes) in self.by_thread.items():
            records = times
            ends = np.append(times[1:], max(self.end_ns, int(times[-1])))
            keep = ends > times
            times, nodes, ends = times[keep], nodes[keep], ends[keep]
            if not len(times) or not np.any(nodes):
                continue
            first = np.append(True, nodes[1:] != nodes[:-1])
            at = np.flatnonzero(first)
            start = times[at]
            end = np.append(times[at[1:]], ends[-1])
            node = nodes[at]
            stack, site = stacks[node], sites[node]
            track = tracks.thread(native_id)
            parts.append(
                pa.table(
                    {
                        "track_id": np.full(len(at), track, dtype=np.int32),
                        "start_ns": start,
                        "duration_ns": end - start,
                        "stack_id": pa.array(stack, mask=stack == 0),
                        "site_id": pa.array(site, mask=site == 0),
                        "line_records": np.searchsorted(records, end) - np.searchsorted(records, start),
                        "skipped_calls": self._skipped_calls(native_id, start, end),
                        "module_calls": self._module_calls(native_id, start, end),
                        "module_python_ns": self._module_python(
                            native_id, start, end, ops.get(track, (none, none))
                        ),
                    }
                )
            )
        return pa.concat_tables(parts) if parts else None
