"""The rows of compiled graphs in a window: which lines each kernel computes, with shares."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from explorer.collectors.capture.coded_names import CodedNames
from explorer.collectors.capture.compiled import GRAPH_CALL, REGION, CompileRecorder, Graph, match_kernels
from explorer.collectors.capture.compiled_modules import Traced
from explorer.collectors.capture.dimensions import Dimensions
from explorer.collectors.capture.module_paths import ModulePaths

I64 = npt.NDArray[np.int64]


@dataclass(slots=True)
class CompiledRows:
    """`rows` got a line from provenance: `sites` the one with the largest share, `shared` whether there are several;
    `shares` lists (row, site, share) for those. `unknown` are rows inside graphs whose provenance is not known; `kernels`
    names what a graph runs that was compiled before recording, by the row of its call."""

    rows: list[int] = field(default_factory=list)
    sites: list[int] = field(default_factory=list)
    shared: list[bool] = field(default_factory=list)
    shares: list[tuple[int, int, float]] = field(default_factory=list)
    unknown: list[int] = field(default_factory=list)
    kernels: dict[int, list[str]] = field(default_factory=dict)
    modules: dict[int, int] = field(default_factory=dict)
    """Id of the module by row: the innermost one that holds all modules of a kernel's nodes."""


def compiled_rows(
    names: CodedNames,
    parents: I64,
    forward: I64,
    entering: I64,
    recorder: CompileRecorder,
    dimensions: Dimensions,
    paths: ModulePaths,
) -> CompiledRows:
    """Find the kernels of every compiled graph. `forward` is the forward row of each backward row (or -1), `entering` the id of
    the module whose call entered its graph. Rows are sorted so that parents come before children."""
    result = CompiledRows()
    calls = {row: found[1] for row, found in names.found(GRAPH_CALL.match).items()}
    if not calls:
        return result
    children: dict[int, list[int]] = {}
    for row, parent in enumerate(parents.tolist()):
        if parent >= 0:
            children.setdefault(parent, []).append(row)
    sites_of: dict[tuple[str, str], list[tuple[int, float]]] = {}
    for row, key in calls.items():
        graph = recorder.graphs.get(key)
        if graph is None and key in recorder.early:
            result.kernels[row] = recorder.early[key]
            result.unknown.append(row)
        top: list[int] = []
        for child in children.get(row, []):
            # The generated wrapper may have a range of its own around the kernels.
            top.extend(children.get(child, []) if "wrapper_call" in names[child] else [child])
        matched = match_kernels(names, top, graph) if graph is not None else []
        traced = (
            _traced_modules(graph, _compile_id(row, names, parents, forward)) if graph is not None else {}
        )
        known = set()
        for kernel, handle in matched:
            assert graph is not None
            lines = sites_of.get((key, handle))
            if lines is None:
                shares: dict[int, float] = {}
                for chain, share in recorder.lines_of(graph, handle):
                    site = dimensions.responsible(chain)
                    shares[site] = shares.get(site, 0.0) + share
                lines = sites_of[(key, handle)] = sorted(shares.items(), key=lambda item: -item[1])
            if not lines:
                continue
            known.add(kernel)
            module = paths.common(
                [paths.placed(*one, int(entering[kernel])) for one in traced.get(handle, [])]
            )
            below = [kernel]
            while below:
                at = below.pop()
                result.rows.append(at)
                if module:
                    result.modules[at] = module
                result.sites.append(lines[0][0])
                result.shared.append(len(lines) > 1)
                if len(lines) > 1:
                    result.shares.extend((at, site, share) for site, share in lines)
                below.extend(children.get(at, []))
        below = [kernel for kernel in top if kernel not in known]
        while below:
            at = below.pop()
            result.unknown.append(at)
            below.extend(children.get(at, []))
    return result


def _compile_id(row: int, names: CodedNames, parents: I64, forward: I64) -> str | None:
    """Which compilation a graph's call is of: the range around it says so, for a backward graph that around its forward row."""
    while row >= 0:
        if names[row].startswith(REGION):
            return names[row].rpartition(" ")[2]
        row = int(forward[row] if 0 <= forward[row] < row else parents[row])
    return None


def _traced_modules(graph: Graph, compile_id: str | None) -> dict[str, list[Traced]]:
    """Modules by kernel of a graph that was compiled as `compile_id`; if that is unknown, where it was compiled but once."""
    if compile_id is None and len(graph.modules) == 1:
        return next(iter(graph.modules.values()))
    return graph.modules.get(compile_id or "", {})
