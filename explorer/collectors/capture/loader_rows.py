"""What DataLoader workers handed over, as rows of the training process's rank: a track, line states and fetches of every
worker, and for every batch an edge from its fetch to the wait for it."""

from __future__ import annotations

import json
from collections import defaultdict, deque
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from explorer.collectors.capture.dimensions import Dimensions
from explorer.collectors.capture.loader_watch import Wait
from explorer.collectors.capture.steps import Step, step_of
from explorer.collectors.capture.tracks import Tracks

I64 = npt.NDArray[np.int64]

FETCH_NAME = "DataLoader worker fetch"


@dataclass(slots=True)
class _Worker:
    """The call chains of one worker process, by node: sites, innermost first; stack; responsible site."""

    chains: list[tuple[int, ...]] = field(default_factory=lambda: [()])
    stacks: list[int] = field(default_factory=lambda: [0])
    sites: list[int] = field(default_factory=lambda: [0])
    user: list[bool] = field(default_factory=lambda: [False])


class LoaderRows:
    """Merges pieces as they come; remembers fetches and waits until the other half is known."""

    def __init__(self) -> None:
        self.workers: set[tuple[int, int]] = set()
        self.full = False
        self.hot: set[str] = set()
        self._known: dict[tuple[int, int], _Worker] = {}
        self._steps: dict[int, Step] = {}
        self._fetched: dict[tuple[int, int], deque[int]] = defaultdict(deque)
        self._awaited: dict[tuple[int, int], deque[int | None]] = defaultdict(deque)

    def know_steps(self, steps: list[Step]) -> None:
        """Steps of a window: what a worker hands over later may belong to them."""
        self._steps.update((step.number, step) for step in steps)

    def tables(
        self,
        pieces: list[dict[str, Any]],
        waits: list[Wait],
        data_rows: list[tuple[int, int, int]],
        steps: list[Step],
        windows: list[tuple[int, int]] | None,
        dimensions: Dimensions,
        tracks: Tracks,
        first_event_id: int,
        rank: int,
    ) -> tuple[dict[str, Any], int]:
        """(rows by table, next free event id). `data_rows` are (start, end, event id) of this window's data events;
        `windows` keeps only what began inside one of them, where recording is not continuous."""
        self.know_steps(steps)
        known_steps = sorted(self._steps.values(), key=lambda step: step.start_ns)
        states: list[pa.Table] = []
        fetches: list[tuple[int, int, int, int, tuple[int, int], int]] = []
        for piece in pieces:
            self.full |= piece["full"]
            self.hot.update(piece["hot"])
            name = (piece["loader"], piece["worker"])
            self.workers.add(name)
            track = tracks.loader_worker(*name, piece["process_id"], piece["native_id"])
            states.append(self._states(piece, track, dimensions, windows))
            for batch, begin, end in piece["fetches"]:
                fetches.append((begin, end, track, batch, (piece["iterator"], batch), piece["worker"]))
        fetches.sort()
        tables: dict[str, Any] = {}
        if states:
            merged = pa.concat_tables(states)
            if merged.num_rows:
                tables["host_states"] = merged
        kept = [fetch for fetch in fetches if windows is None or _inside(fetch[0], windows)]
        if kept:
            starts = np.array([fetch[0] for fetch in kept], dtype=np.int64)
            durations = np.array([fetch[1] - fetch[0] for fetch in kept], dtype=np.int64)
            numbers = step_of(starts, known_steps)
            tables["events"] = {
                "event_id": [first_event_id + at for at in range(len(kept))],
                "track_id": [fetch[2] for fetch in kept],
                "category": ["annotation"] * len(kept),
                "name": [FETCH_NAME] * len(kept),
                "start_ns": starts.tolist(),
                "duration_ns": durations.tolist(),
                "self_ns": durations.tolist(),
                "step": [number if number >= 0 else None for number in numbers.tolist()],
                "phase": ["data"] * len(kept),
                "attribution": ["none"] * len(kept),
                "attributes": [json.dumps({"batch": fetch[3], "worker": fetch[5]}) for fetch in kept],
            }
        for at, fetch in enumerate(kept):
            self._fetched[fetch[4]].append(first_event_id + at)
        for iterator, batch, asked, there in waits:
            self._awaited[iterator, batch].append(_enclosing(asked, there, data_rows))
        if edges := self._edges(rank):
            tables["edges"] = edges
        return tables, first_event_id + len(kept)

    def _edges(self, rank: int) -> list[dict[str, Any]]:
        edges = []
        for key in list(self._fetched):
            fetched, awaited = self._fetched[key], self._awaited.get(key)
            while fetched and awaited:
                source, target = fetched.popleft(), awaited.popleft()
                if target is not None:
                    edges.append(
                        {"source_id": source, "target_rank": rank, "target_id": target, "kind": "data"}
                    )
            if not fetched:
                del self._fetched[key]
        return edges

    def _states(
        self, piece: dict[str, Any], track: int, dimensions: Dimensions, windows: list[tuple[int, int]] | None
    ) -> pa.Table:
        worker = self._known.setdefault((piece["iterator"], piece["worker"]), _Worker())
        for parent, file, line, function, last in piece["fresh"]:
            site = dimensions.add_site(file, line, function, last)
            chain = (site, *worker.chains[parent])
            is_user = dimensions.is_user_file(file)
            worker.chains.append(chain)
            worker.stacks.append(dimensions.add_stack(chain))
            worker.sites.append(site if is_user or not worker.user[parent] else worker.sites[parent])
            worker.user.append(is_user or worker.user[parent])
        times = np.frombuffer(piece["times"], dtype=np.int64)
        nodes = np.frombuffer(piece["nodes"], dtype=np.int64)
        ends = np.append(times[1:], max(piece["end_ns"], int(times[-1]))) if len(times) else times
        # A worker that waits for its next task runs no user code: no row.
        keep = (ends > times) & (nodes > 0)
        if windows is not None:
            keep &= np.array([_inside(time, windows) for time in times.tolist()], dtype=bool)
        times, nodes, ends = times[keep], nodes[keep], ends[keep]
        return pa.table(
            {
                "track_id": np.full(len(times), track, dtype=np.int32),
                "start_ns": times,
                "duration_ns": ends - times,
                "stack_id": np.array(worker.stacks, dtype=np.int64)[nodes],
                "site_id": np.array(worker.sites, dtype=np.int64)[nodes],
            }
        )


def _inside(time: int, windows: list[tuple[int, int]]) -> bool:
    return any(start <= time < end for start, end in windows)


def _enclosing(asked: int, there: int, data_rows: list[tuple[int, int, int]]) -> int | None:
    """The data event of the training thread during which a batch was waited for. The profiler's clock is converted,
    so that a microsecond may be missing."""
    for start, end, event in data_rows:
        if start - 20_000 <= asked and there <= end + 20_000:
            return event
    return None
