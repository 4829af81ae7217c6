"""CUDA graphs: each kernel of a replay belongs to the line that launched it while the graph was captured.

Between cudaStreamBeginCapture and cudaStreamEndCapture launches are written down, not run: they are the graph's nodes, in
the order of their creation. A replay (cudaGraphLaunch) runs them all under one correlation number; its events are the
nodes in order of their node number where the profiler gives it, else of their start. A graph is known by its number once
it was matched, else by the sequence of kernels, copies and fills. (CUPTI's activity records: graphId, graphNodeId.)
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from explorer.collectors.capture.coded_names import CodedNames

I64 = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

_BEGIN = "StreamBeginCapture"
_END = "StreamEndCapture"
_REPLAY = "GraphLaunch"
_NODE_KEYS = ("graph node id", "graph_node_id", "graphNodeId")
_GRAPH_KEYS = ("graph id", "graph_id", "graphId")
_LAUNCHES = (
    ("LaunchKernel", "kernel"),
    ("LaunchCooperativeKernel", "kernel"),
    ("Memcpy", "copy"),
    ("Memset", "fill"),
)


@dataclass(frozen=True, slots=True)
class Node:
    """A launch that was captured: what it launches (kernel, copy, fill) and what is known of its line."""

    kind: str
    site: int
    module: int
    phase: int
    is_coarse: bool


@dataclass(slots=True)
class ReplayedRows:
    """Rows of device events, the captured node of each, and whether that is by number (else by order); and rows of graphs
    whose capture is not known."""

    rows: list[int] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    by_number: list[bool] = field(default_factory=list)
    unknown: list[int] = field(default_factory=list)


class GraphReplays:
    """Graphs captured so far; they outlive the window in which they were captured."""

    def __init__(self) -> None:
        self._captured: list[tuple[Node, ...]] = []
        self._open: list[Node] | None = None
        self._of_graph: dict[int | None, tuple[Node, ...]] = {}

    def captures(self, names: CodedNames, is_launched: Bools, starts: I64, nodes: dict[int, Node]) -> None:
        """Take in the graphs captured in a window. `nodes`: by row, the launches that may be nodes; `is_launched`: rows of
        calls whose work ran at once."""
        wanted = names.where(lambda name: launch_kind(name) or _BEGIN in name or _END in name)
        rows = np.flatnonzero(wanted)
        for row in rows[np.argsort(starts[rows], kind="stable")].tolist():
            name = names[row]
            if _BEGIN in name:
                self._open = []
            elif _END in name:
                if self._open:
                    self._captured.append(tuple(self._open))
                self._open = None
            elif self._open is not None and row in nodes and not is_launched[row]:
                self._open.append(nodes[row])

    def replays(
        self,
        names: CodedNames,
        categories: CodedNames,
        on_device: Bools,
        starts: I64,
        launch: I64,
        attributes: Sequence[str | None],
    ) -> ReplayedRows:
        """The captured node of every device event of a replay."""
        result = ReplayedRows()
        replays = names.where(lambda name: _REPLAY in name) & ~on_device
        if not np.any(replays):
            return result
        events = np.flatnonzero(on_device & (launch >= 0))
        events = events[replays[launch[events]]]
        for call in np.unique(launch[events]).tolist():
            rows = events[launch[events] == call]
            numbers = [_numbers(attributes[row]) for row in rows.tolist()]
            numbered = all(node is not None for _, node in numbers)
            keys = [node or 0 for _, node in numbers] if numbered else starts[rows].tolist()
            ordered = [int(row) for _, row in sorted(zip(keys, rows.tolist()))]
            graphs = {graph for graph, _ in numbers}
            graph = graphs.pop() if len(graphs) == 1 else None
            nodes, is_only = self._graph(graph, tuple(categories[row] for row in ordered))
            result.unknown += ordered[len(nodes) :]
            result.rows += ordered[: len(nodes)]
            result.nodes += nodes
            result.by_number += [numbered and is_only] * len(nodes)
        return result

    def _graph(self, number: int | None, kinds: tuple[str, ...]) -> tuple[tuple[Node, ...], bool]:
        """The captured graph of a replay (empty: unknown), and whether no other one could be meant."""
        like = [graph for graph in self._captured if tuple(node.kind for node in graph) == kinds]
        if not like:
            return (), False
        chosen = self._of_graph.get(number) if number is not None else like[-1]
        if chosen is None:
            # Graphs of one form are taken to be replayed first in the order of their capture.
            taken = list(self._of_graph.values())
            chosen = next((graph for graph in like if not any(graph is other for other in taken)), like[-1])
            self._of_graph[number] = chosen
        if tuple(node.kind for node in chosen) != kinds:
            return (), False
        return chosen, len(like) == 1


def launch_kind(name: str) -> str | None:
    """What a runtime call enqueues (kernel, copy, fill); None for any other."""
    return next((kind for word, kind in _LAUNCHES if word in name), None)


def _numbers(attributes: str | None) -> tuple[int | None, int | None]:
    """(graph, node) numbers of a device event; None or 0 where it has none."""
    values = json.loads(attributes) if attributes else {}
    graph, node = (
        next((values[key] for key in keys if values.get(key)), None) for keys in (_GRAPH_KEYS, _NODE_KEYS)
    )
    return (int(graph) if graph else None, int(node) if node else None)
