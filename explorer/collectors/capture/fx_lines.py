"""Source lines of FX graphs: a node knows the stack it was traced from.

For graphs that run as Python (aot_eager, backends of one's own) FX writes one line of code per node. Operators that are
given functions (flex_attention: score_mod, mask_mod) hold the graphs of those, and compute their lines as well.
"""

from __future__ import annotations

import contextlib
import re
from types import CodeType, ModuleType
from typing import Any

from explorer.collectors.capture.compiled_modules import CompiledModules, Traced
from explorer.collectors.capture.import_watch import ImportWatch

GENERATED = "<eval_with_key>"
"""How the file names of FX's generated code begin."""

_FRAME = re.compile(r'File "([^"]+)", line (\d+), in (\S+)')

Line = tuple[str, int, str]


class FxLines:
    """Stack traces and modules of the nodes of every graph that is compiled to Python while a capture runs."""

    def __init__(self, modules: CompiledModules) -> None:
        self._modules = modules
        self._graphs: dict[str, tuple[dict[int, Any], list[str | None], list[Traced | None]]] = {}
        self._inner: dict[tuple[Line, ...], list[list[Line]]] = {}
        self._undo: list[tuple[Any, Any, Any]] = []
        self._watch = ImportWatch("torch.fx.graph_module", self._install)

    def start(self) -> None:
        self._watch.start()

    def stop(self) -> None:
        self._watch.stop()
        for owner, ours, original in self._undo:
            if owner.recompile is ours:
                owner.recompile = original
        self._undo.clear()

    def chain(self, code: CodeType, line: int) -> list[Line]:
        """Frames (innermost last) of the node at a line of generated code; empty where it is not known."""
        return frames_of(self._node(code, line)[0])

    def module(self, code: CodeType, line: int) -> Traced | None:
        """The module that the node at a line of generated code was traced in; None where it is not known."""
        return self._node(code, line)[1]

    def _node(self, code: CodeType, line: int) -> tuple[str | None, Traced | None]:
        lines, traces, modules = self._graphs.get(code.co_filename, ({}, [], []))
        at = lines.get(line - code.co_firstlineno)
        return (traces[at], modules[at]) if at is not None and at < len(traces) else (None, None)

    def inner(self, chain: tuple[Line, ...]) -> list[list[Line]]:
        """Chains of the nodes of the functions that the operator at a chain was given; empty for any other."""
        return self._inner.get(chain, [])

    def _install(self, module: ModuleType) -> None:
        owner = module.GraphModule
        original = owner.recompile
        fx = self

        def recompile(graph: Any) -> Any:
            result = original(graph)
            # Internals of another version: the ops stay with the function that was compiled.
            with contextlib.suppress(Exception):
                fx._keep(graph)
            return result

        owner.recompile = recompile
        self._undo.append((owner, recompile, original))

    def _keep(self, graph: Any) -> None:
        self._keep_inner(graph)
        code = type(graph).forward.__code__
        lines = graph._lineno_map
        if lines and code.co_filename.startswith(GENERATED):
            self._graphs[code.co_filename] = (
                dict(lines),
                [node.meta.get("stack_trace") for node in graph.graph.nodes],
                self._modules.of_nodes(list(graph.graph.nodes)),
            )

    def _keep_inner(self, graph: Any) -> None:
        given = {
            node: getattr(graph, str(node.target))
            for node in graph.graph.nodes
            if node.op == "get_attr" and hasattr(getattr(graph, str(node.target), None), "graph")
        }
        if not given:
            return
        for node in graph.graph.nodes:
            functions = [given[one] for one in node.all_input_nodes if one in given]
            chain = tuple(frames_of(node.meta.get("stack_trace")))
            if functions and chain:
                traces = [
                    inside.meta.get("stack_trace")
                    for function in functions
                    for inside in function.graph.nodes
                    if inside.op.startswith("call_")
                ]
                inner = [frames_of(trace) for trace in traces]
                # Copies of the graph that are made further down know less: the call, but not what is called.
                if all(len(frames) > len(chain) for frames in inner):
                    self._inner[chain] = inner


def frames_of(trace: str | None) -> list[Line]:
    """The frames of a traceback's text, innermost last."""
    return [(file, int(number), name) for file, number, name in _FRAME.findall(trace or "")]
