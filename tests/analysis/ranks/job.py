"""Builds runs of several ranks with known truth: arrivals, transfers, clocks, a straggler and its line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from explorer.store.writer import RunWriter

WORK, SLOW, SYNC = 10, 11, 12
"""Sites: the ordinary line, the line a straggler loses its time in, the line of the collective."""


@dataclass
class Job:
    """Every step each rank works `work_ns` (plus what `extra` says), then all meet in an all-reduce of `transfer_ns`."""

    ranks: int = 4
    steps: int = 30
    work_ns: int = 1_000_000
    transfer_ns: int = 200_000
    jitter_ns: int = 2_000
    extra: dict[tuple[int, int], int] = field(default_factory=dict)
    """(rank, step) to additional work at the slow line"""
    offset_ns: Sequence[int] = ()
    drift: Sequence[float] = ()
    hosts: Sequence[str] = ()
    with_sequence: bool = True
    side: str = "device"
    seed: int = 1

    def write(self, directory: Path, *, only: Sequence[int] | None = None) -> str:
        """Write the run; returns its directory. `only`: just these ranks."""
        random = np.random.default_rng(self.seed)
        clock = [0] * self.ranks
        rows: list[list[dict[str, Any]]] = [[] for _ in range(self.ranks)]
        states: list[list[dict[str, Any]]] = [[] for _ in range(self.ranks)]
        marks: list[list[dict[str, Any]]] = [[] for _ in range(self.ranks)]
        meetings: list[list[dict[str, Any]]] = [[] for _ in range(self.ranks)]
        for step in range(self.steps):
            begin = list(clock)
            arrival = []
            for rank in range(self.ranks):
                extra = self.extra.get((rank, step), 0)
                work = self.work_ns + int(random.integers(0, self.jitter_ns + 1))
                self._state(states, rank, begin[rank], work, WORK)
                self._state(states, rank, begin[rank] + work, extra, SLOW)
                self._event(
                    rows, rank, 3 * step, 1, "op", "aten::mm", begin[rank], begin[rank] + work, step, WORK
                )
                arrival.append(begin[rank] + work + extra)
            end = max(arrival) + self.transfer_ns
            for rank in range(self.ranks):
                done = end + int(random.integers(0, self.jitter_ns + 1))
                number = 3 * step + 1
                self._event(
                    rows,
                    rank,
                    number,
                    7,
                    "collective",
                    "ncclDevKernel_AllReduce",
                    arrival[rank],
                    done,
                    step,
                    SYNC,
                )
                self._state(states, rank, arrival[rank], done - arrival[rank], SYNC)
                meetings[rank].append(
                    {
                        "event_id": number,
                        "side": self.side,
                        "group": "0",
                        "group_description": "default_pg",
                        "operation": "all_reduce",
                        "size_bytes": 1 << 20,
                        "group_size": self.ranks,
                        "sequence": step if self.with_sequence else None,
                    }
                )
                clock[rank] = done
                at = self._own(rank, begin[rank])
                marks[rank].append(
                    {
                        "step": step,
                        "start_ns": at,
                        "duration_ns": self._own(rank, done) - at,
                        "complete": True,
                    }
                )
        for rank in range(self.ranks) if only is None else only:
            self._write_rank(directory, rank, rows[rank], states[rank], marks[rank], meetings[rank])
        return str(directory)

    def _own(self, rank: int, true_ns: int) -> int:
        """True time on a rank's clock."""
        offset = self.offset_ns[rank] if self.offset_ns else 0
        drift = self.drift[rank] if self.drift else 0.0
        return 10**15 + true_ns + offset + round(drift * true_ns)

    def _event(
        self,
        rows: Any,
        rank: int,
        number: int,
        track: int,
        category: str,
        name: str,
        start: int,
        end: int,
        step: int,
        site: int,
    ) -> None:
        at = self._own(rank, start)
        length = self._own(rank, end) - at
        rows[rank].append(
            {
                "event_id": number,
                "track_id": track,
                "category": category,
                "name": name,
                "start_ns": at,
                "duration_ns": length,
                "self_ns": length,
                "step": step,
                "site_id": site,
            }
        )

    def _state(self, states: Any, rank: int, start: int, length: int, site: int) -> None:
        if length > 0:
            at = self._own(rank, start)
            states[rank].append(
                {
                    "track_id": 1,
                    "start_ns": at,
                    "duration_ns": self._own(rank, start + length) - at,
                    "site_id": site,
                }
            )

    def _write_rank(
        self, directory: Path, rank: int, rows: Any, states: Any, marks: Any, meetings: Any
    ) -> None:
        with RunWriter(directory, rank=rank, made_by="capture") as writer:
            writer.manifest.host = {"hostname": self.hosts[rank] if self.hosts else f"host{rank}"}
            writer.write(
                "tracks",
                [
                    {"track_id": 1, "kind": "thread", "device_type": "cpu", "label": "main"},
                    {
                        "track_id": 7,
                        "kind": "stream",
                        "device_type": "cuda",
                        "device_index": rank,
                        "label": "stream 7",
                    },
                ],
            )
            writer.write("events", rows)
            writer.write("host_states", states)
            writer.write("steps", marks)
            writer.write("collectives", meetings)
            code = {WORK: "y = model(x)", SLOW: "batch = slow(batch)", SYNC: "dist.all_reduce(g)"}
            writer.write(
                "sites",
                [
                    {
                        "site_id": n,
                        "file": "train.py",
                        "line": n,
                        "function": "step",
                        "code": text,
                        "is_user": True,
                    }
                    for n, text in code.items()
                ],
            )
