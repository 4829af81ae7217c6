"""A window of the profiler and of the line recorder, made by hand: what a GPU would have given."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from explorer.collectors.capture.coverage import Coverage
from explorer.collectors.capture.dimensions import Dimensions
from explorer.collectors.capture.graph_replays import GraphReplays
from explorer.collectors.capture.host_states import HostStates
from explorer.collectors.capture.kineto_window import RawWindow
from explorer.collectors.capture.source_paths import SourcePaths
from explorer.collectors.capture.tracks import Tracks
from explorer.collectors.capture.window_tables import build_window
from explorer.collectors.lines.records import ThreadRecords
from explorer.collectors.lines.replay import Replay
from explorer.collectors.lines.user_code import UserCode

THREAD = 77
STREAM = 7


def body() -> None:
    """Stands for the program: its lines are named by number below."""


FIRST = body.__code__.co_firstlineno


@dataclass
class Profile:
    """Rows of a window and what its thread was executing, written one after the other at 1000 ns each."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    records: list[Any] = field(default_factory=list)
    now: int = 0

    def line(self, number: int) -> None:
        self.records += [self.now, FIRST + number]

    def op(self, name: str, *calls: tuple[str, int]) -> None:
        """An op with runtime calls (name, correlation) inside."""
        self.add(name, "cpu_op", 1000, correlation=10_000 + self.now)
        for place, (call, number) in enumerate(calls):
            self.add(call, "cuda_runtime", 100, at=self.now + 100 * (place + 1), correlation=number)
        self.now += 1000

    def call(self, name: str, number: int) -> None:
        self.add(name, "cuda_runtime", 900, correlation=number)
        self.now += 1000

    def device(self, name: str, number: int, metadata: str = "", kind: str = "kernel") -> None:
        self.add(name, kind, 500, device=0, resource=STREAM, correlation=number, metadata=metadata)
        self.now += 1000

    def add(self, name: str, kind: str, duration: int, **more: Any) -> None:
        self.rows.append({"name": name, "kind": kind, "duration": duration, "at": self.now, **more})

    def raw(self) -> RawWindow:
        def numbers(key: str, otherwise: int) -> Any:
            return np.array([row.get(key, otherwise) for row in self.rows], dtype=np.int64)

        zeros = np.zeros(len(self.rows), dtype=np.int64)
        return RawWindow(
            [row["name"] for row in self.rows],
            [row["kind"] for row in self.rows],
            numbers("at", 0),
            numbers("duration", 0),
            numbers("device", 1),
            numbers("resource", THREAD),
            numbers("correlation", 0),
            zeros,
            zeros,
            zeros.astype(bool),
            zeros,
            [row.get("metadata", "") for row in self.rows],
        )


class Program:
    """Windows of one capture."""

    def __init__(self) -> None:
        self.replay = Replay()
        self.user_code = UserCode()
        self.dimensions = Dimensions(self.replay.chains, self.user_code, SourcePaths("/nowhere/"))
        self.graphs = GraphReplays()
        self.carried: dict[int, int] = {}

    def window(self, profile: Profile) -> list[tuple[str, int, str, str, int]]:
        """(name, responsible line, attribution, precision, executing line) of the device events, in time."""
        records = ThreadRecords(THREAD, 1, "main", [0, body.__code__, *profile.records])
        states = HostStates(self.replay.states([records]), self.carried, 0, profile.now)
        tracks = Tracks(THREAD)
        built = build_window(
            profile.raw(), [], states, self.dimensions, tracks, [], 0, Coverage(), replays=self.graphs
        )
        self.streams = {row["track_id"] for row in tracks.take() if row["kind"] == "stream"}
        sites, stacks = self.dimensions.take()
        self.sites = getattr(self, "sites", {}) | {row["site_id"]: row["line"] - FIRST for row in sites}
        self.innermost = getattr(self, "innermost", {})
        for stack, depth, site in zip(*(stacks or {}).values()):
            if depth == 0:
                self.innermost[stack] = site
        return [
            (
                e["name"],
                self.sites[e["site_id"]],
                e["attribution"],
                e["precision"],
                self.sites[self.innermost[e["stack_id"]]],
            )
            for e in built.tables["events"].to_pylist()
            if e["track_id"] in self.streams
        ]
