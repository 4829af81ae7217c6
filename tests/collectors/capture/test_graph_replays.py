"""CUDA graphs: kernels of a replay have the lines that launched them during the capture, in a profile made by hand."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

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
        built = build_window(
            profile.raw(), [], states, self.dimensions, Tracks(THREAD), [], 0, Coverage(), replays=self.graphs
        )
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
            if e["category"] in ("kernel", "copy", "fill")
        ]


def capture(profile: Profile) -> None:
    """A graph of two kernels and a fill, from lines 1, 2 and 3; beside it a kernel that runs at once."""
    profile.line(9)
    profile.op("aten::ones", ("cudaLaunchKernel", 50))
    profile.device("fill_kernel", 50)
    profile.call("cudaStreamBeginCapture", 51)
    profile.line(1)
    profile.op("aten::mm", ("cuLaunchKernelEx", 52))
    profile.line(2)
    profile.op("aten::zero_", ("cudaMemsetAsync", 53))
    profile.line(3)
    profile.op("aten::relu", ("cudaLaunchKernel", 54))
    profile.call("cudaStreamEndCapture", 55)


def replay(profile: Profile, number: int, *nodes: str) -> None:
    """A replay at line 5 whose events begin in another order than they were captured."""
    profile.line(5)
    profile.call("cudaGraphLaunch", number)
    relu, gemm, memset = nodes or ("", "", "")
    profile.device("relu", number, relu)
    profile.device("gemm", number, gemm)
    profile.device("Memset", number, memset, "gpu_memset")


def node(number: int) -> str:
    return f'"graph id": 4, "graph node id": {number}'


def test_by_node_number_whatever_the_order() -> None:
    profile, program = Profile(), Program()
    capture(profile)
    for number in (60, 61):
        replay(profile, number, node(103), node(101), node(102))
    found = program.window(profile)
    once = [
        ("relu", 3, "graph_replay", "exact", 5),
        ("gemm", 1, "graph_replay", "exact", 5),
        ("Memset", 2, "graph_replay", "exact", 5),
    ]
    assert found == [("fill_kernel", 9, "flow", "exact", 9), *once, *once]


def test_by_order_where_nodes_have_no_number_and_in_a_later_window() -> None:
    program = Program()
    first = Profile()
    capture(first)
    program.window(first)
    second = Profile()
    second.line(5)
    second.call("cudaGraphLaunch", 60)
    for name, kind in (("gemm", "kernel"), ("Memset", "gpu_memset"), ("relu", "kernel")):
        second.device(name, 60, kind=kind)
    assert program.window(second) == [
        ("gemm", 1, "graph_replay", "inferred", 5),
        ("Memset", 2, "graph_replay", "inferred", 5),
        ("relu", 3, "graph_replay", "inferred", 5),
    ]


def test_a_graph_captured_unseen_stays_with_the_replay() -> None:
    program, profile = Program(), Profile()
    capture(profile)
    profile.line(5)
    profile.call("cudaGraphLaunch", 60)
    profile.device("other", 60)
    assert program.window(profile)[-1] == ("other", 5, "flow", "coarse", 5)


def test_graphs_of_one_form_are_told_apart_by_order_and_said_to_be() -> None:
    program, profile = Program(), Profile()
    for line in (1, 2):
        profile.call("cudaStreamBeginCapture", 70)
        profile.line(line)
        profile.op("aten::mm", ("cudaLaunchKernel", 71))
        profile.call("cudaStreamEndCapture", 72)
    for number, graph in ((80, 5), (81, 6), (82, 5)):
        profile.line(5)
        profile.call("cudaGraphLaunch", number)
        profile.device("gemm", number, f'"graph id": {graph}, "graph node id": {graph}')
    found = [(line, precision) for _, line, _, precision, _ in program.window(profile)]
    assert found == [(1, "inferred"), (2, "inferred"), (1, "inferred")]
