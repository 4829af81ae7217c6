"""Which of our own recorded ops a system profile's framework row is: by thread, name and time."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from explorer.collectors.call_stacks import CallStack
from explorer.store.writer import RunWriter

TOLERANCE_NS = 1_000_000
"""Both sides are recorded by one profiler on one clock; a millisecond covers rounding and late callbacks."""


@dataclass(frozen=True)
class OwnEvent:
    """One op of our capture."""

    event_id: int
    start_ns: int
    step: int | None
    chain: CallStack | None


class OwnEvents:
    """Ops of one rank by thread and name, in time order."""

    def __init__(self, rows: list[dict[str, Any]], threads: dict[int, int | None]) -> None:
        self._tracks = {thread: track for track, thread in threads.items() if thread is not None}
        self._by_name: dict[tuple[int | None, str], list[OwnEvent]] = defaultdict(list)
        for row in rows:
            site, stack = row["site_id"], row["stack_id"]
            chain = CallStack(stack or 0, site, True) if site is not None else None
            event = OwnEvent(row["event_id"], row["start_ns"], row["step"], chain)
            self._by_name[threads.get(row["track_id"]), row["name"]].append(event)
        self._starts = {}
        for key, events in self._by_name.items():
            events.sort(key=lambda event: event.start_ns)
            self._starts[key] = np.array([event.start_ns for event in events], np.int64)

    def track(self, thread: int | None) -> int | None:
        """The capture's track of a thread."""
        return self._tracks.get(thread) if thread is not None else None

    def find(self, thread: int | None, name: str, start_ns: int) -> OwnEvent | None:
        """The op of this name and thread that starts nearest, within the tolerance; any thread where it is unknown."""
        for key in ((thread, name), (None, name)):
            starts = self._starts.get(key)
            if starts is None:
                continue
            place = int(np.searchsorted(starts, start_ns))
            near = [at for at in (place - 1, place) if 0 <= at < len(starts)]
            best = min(near, key=lambda at: abs(int(starts[at]) - start_ns), default=None)
            if best is not None and abs(int(starts[best]) - start_ns) <= TOLERANCE_NS:
                return self._by_name[key][best]
        return None


def own_events(writer: RunWriter) -> OwnEvents:
    """Ops and annotations that the capture has written so far for this rank."""
    location = writer.location
    columns = ["event_id", "track_id", "category", "name", "start_ns", "step", "site_id", "stack_id"]
    rows: list[dict[str, Any]] = []
    threads: dict[int, int | None] = {}
    for part in writer.manifest.parts:
        path = location.join(part.path)
        if part.table == "events":
            table = pq.read_table(path, columns=columns, filesystem=location.filesystem, partitioning=None)
            rows += [row for row in table.to_pylist() if row["category"] in ("op", "annotation")]
        elif part.table == "tracks":
            table = pq.read_table(
                path,
                columns=["track_id", "kind", "thread_id"],
                filesystem=location.filesystem,
                partitioning=None,
            )
            threads |= {r["track_id"]: r["thread_id"] for r in table.to_pylist() if r["kind"] == "thread"}
    return OwnEvents(rows, threads)
