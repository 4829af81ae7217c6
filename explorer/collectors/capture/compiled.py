"""torch.compile: which source lines each generated kernel computes, and what compiling cost and why it happened again.

Inductor keeps, where asked to, the stack traces of the graph nodes that each kernel computes; CompiledFxGraph.post_compile
runs for fresh graphs and for graphs from the cache alike and hands them over. Inside a compiled graph's range of the
profiler, the k-th top-level kernel is the k-th provenance comment of the generated source; names are checked.

A kernel's cost is shared out over its lines by the number of graph nodes that each line contributed. An operator that is
given functions (flex_attention) counts as much as all nodes of those together.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import re
import sys
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from explorer.collectors.capture.compiled_modules import CompiledModules, Traced, compile_id
from explorer.collectors.capture.fx_lines import FxLines, Line, frames_of
from explorer.collectors.capture.host_event import HostEvent
from explorer.collectors.capture.import_watch import ImportWatch

REGION = "Torch-Compiled Region"
"""How the ranges of compiled code begin; they end in the compile id."""

GRAPH_CALL = re.compile(r"## Call CompiledFxGraph (\S+) ##")
_HANDLE = re.compile(r"# \[Provenance debug handles\] (\S+)")
_KERNEL_CALL = re.compile(r"^ +(?:stream\d+_)?((?:cpp|triton|extern_kernels)[\w.]+)\(", re.MULTILINE)
"""A call of a kernel in the code that Inductor generates."""

_TEMPLATE = re.compile(r"graph_\d+_kernel")
"""The range of a kernel made from a C++ template (flex_attention, GEMM), which is named before the kernel is."""


@dataclass(slots=True)
class Graph:
    """One compiled graph: handles of its kernels in calling order, and by handle the chains (innermost last) of the
    graph nodes each computes."""

    backward: bool
    handles: list[str] = field(default_factory=list)
    chains: dict[str, list[list[Line]]] = field(default_factory=dict)
    modules: dict[str, dict[str, list[Traced]]] = field(default_factory=dict)
    """By compile id (a cached graph may serve several parts of a program) and handle, the modules of those nodes."""


class CompileRecorder:
    """Graphs by their cache key, and compile events as they happen. Installed when Dynamo or Inductor is imported."""

    def __init__(self, fx: FxLines, modules: CompiledModules) -> None:
        self._fx = fx
        self._modules = modules
        self.graphs: dict[str, Graph] = {}
        self.early: dict[str, list[str]] = {}
        """By cache key, the kernels of graphs that were compiled before: their lines were not kept."""
        self._events: list[HostEvent] = []
        self._seen_us = 0
        self._undo: list[tuple[Any, str, Any, Any]] = []
        self._environment: dict[str, str | None] = {}
        self._config: list[tuple[Any, str, Any]] = []
        self._watches = [
            ImportWatch("torch._inductor.output_code", self._watch_graphs),
            ImportWatch("torch._dynamo.symbolic_convert", self._watch_breaks),
        ]

    def start(self) -> None:
        self._seen_us = time.time_ns() // 1000
        config = sys.modules.get("torch._inductor.config")
        if config is not None:
            for holder, name, value in (
                (config.trace, "provenance_tracking_level", 1),  # type: ignore[attr-defined]
                (config.cpp, "enable_kernel_profile", True),  # type: ignore[attr-defined]
            ):
                self._config.append((holder, name, getattr(holder, name)))
                setattr(holder, name, value)
        else:
            # Read when Inductor is imported.
            for variable in ("INDUCTOR_PROVENANCE", "TORCHINDUCTOR_CPP_ENABLE_KERNEL_PROFILE"):
                self._environment[variable] = os.environ.get(variable)
                os.environ.setdefault(variable, "1")
        self._find_early()
        for watch in self._watches:
            watch.start()

    def stop(self) -> None:
        for watch in self._watches:
            watch.stop()
        for owner, name, ours, original in self._undo:
            if getattr(owner, name, None) is ours:
                setattr(owner, name, original)
        self._undo.clear()
        for holder, name, value in self._config:
            setattr(holder, name, value)
        self._config.clear()
        for variable, before in self._environment.items():
            if before is None:
                os.environ.pop(variable, None)
        self._environment.clear()

    def take(self) -> list[HostEvent]:
        """Compilations and graph breaks since the last call."""
        events, self._events = self._events, []
        return events + self._compilations()

    def lines_of(self, graph: Graph, handle: str) -> list[tuple[list[Line], float]]:
        """Chains (innermost last) of a kernel with their shares, largest first."""
        chains = [tuple(chain) for chain in graph.chains.get(handle, []) if chain]
        counted = Counter(chains)
        total = sum(counted.values())
        return [(list(chain), count / total) for chain, count in counted.most_common()]

    # -- what Inductor compiled

    def _watch_graphs(self, module: ModuleType) -> None:
        owner = module.CompiledFxGraph
        original = owner.post_compile
        recorder = self

        def post_compile(graph: Any, *args: Any, **kwargs: Any) -> Any:
            result = original(graph, *args, **kwargs)
            try:
                options = args[2] if len(args) > 2 else kwargs.get("graph_kwargs", {})
                recorder._keep(graph, bool(options.get("is_backward")))
            except Exception:
                # Internals of another version: the kernels stay with the line that calls the graph.
                pass
            return result

        construct = owner.__init__

        def __init__(graph: Any, *args: Any, **kwargs: Any) -> None:
            construct(graph, *args, **kwargs)
            with contextlib.suppress(Exception):
                debug = sys.modules["torch._inductor.debug"]
                nodes = args[2] if len(args) > 2 else kwargs["gm"]
                recorder._modules.keep(
                    graph,
                    nodes.graph,
                    debug._inductor_triton_kernel_to_post_grad_node_info,  # type: ignore[attr-defined]
                )

        owner.__init__ = __init__
        self._undo.append((owner, "__init__", __init__, construct))
        owner.post_compile = post_compile
        self._undo.append((owner, "post_compile", post_compile, original))

    def _find_early(self) -> None:
        module = sys.modules.get("torch._inductor.output_code")
        if module is None:
            return
        kind = module.CompiledFxGraph
        for graph in [thing for thing in gc.get_objects() if type(thing) is kind]:
            source = getattr(graph, "source_code", None) or ""
            names = list(dict.fromkeys(_KERNEL_CALL.findall(source)))
            self.early[str(getattr(graph, "_fx_graph_cache_key", ""))] = names

    def _keep(self, compiled: Any, backward: bool) -> None:
        text = getattr(compiled, "inductor_provenance_stack_traces_str", None)
        source = getattr(compiled, "source_code", None) or ""
        graph = Graph(backward, _HANDLE.findall(source))
        before: set[tuple[Line, ...]] = set()
        for handle, traces in (json.loads(text) if text else {}).items():
            graph.chains[handle] = self._computed([frames_of(trace) for trace in traces], before)
            before.update(map(tuple, graph.chains[handle]))
        key = str(compiled._fx_graph_cache_key)
        if key in self.graphs:
            graph.modules = self.graphs[key].modules
        graph.modules[compile_id()] = self._modules.of_kernels(compiled)
        self.graphs[key] = graph

    def _computed(self, nodes: list[list[Line]], before: set[tuple[Line, ...]]) -> list[list[Line]]:
        """The nodes' chains; with those of the functions that an operator among them was given, which then counts as much
        as they do together. The template such an operator is made from lists the nodes of its inputs, too: what an
        earlier kernel has computed is left out."""
        inner = {tuple(chain): self._fx.inner(tuple(chain)) for chain in nodes}
        if not any(inner.values()):
            return nodes
        chains: list[list[Line]] = []
        for chain in nodes:
            within = inner[tuple(chain)]
            if within or tuple(chain) not in before:
                chains.extend([chain] * max(1, len(within)) + within)
        return chains

    # -- what Dynamo did

    def _watch_breaks(self, module: ModuleType) -> None:
        owner = module.InstructionTranslatorBase
        original = getattr(owner, "log_graph_break", None)
        if original is None:
            return
        recorder = self

        def log_graph_break(translator: Any, code_options: Any, reason: str, exc: Any, *more: Any) -> Any:
            if not getattr(exc, "logged", False):
                with contextlib.suppress(Exception):
                    recorder._note_break(reason, exc)
            return original(translator, code_options, reason, exc, *more)

        owner.log_graph_break = log_graph_break
        self._undo.append((owner, "log_graph_break", log_graph_break, original))

    def _note_break(self, reason: str, exc: Any) -> None:
        import torch

        stack = getattr(exc, "real_stack", None) or torch._guards.TracingContext.extract_stack()
        line = (stack[-1].filename, stack[-1].lineno or 0, stack[-1].name) if stack else None
        text = str(getattr(exc, "msg", None) or exc or reason)
        self._events.append(
            HostEvent(
                threading.get_native_id(),
                "compile",
                "graph break",
                time.time_ns(),
                0,
                json.dumps({"reason": text, "why_it_ended": str(reason)}, ensure_ascii=False),
                line=line,
            )
        )

    def _compilations(self) -> list[HostEvent]:
        utils = sys.modules.get("torch._dynamo.utils")
        if utils is None:
            return []
        events = []
        for metrics in utils.get_compilation_metrics():
            start = getattr(metrics, "start_time_us", None)
            duration = getattr(metrics, "duration_us", None)
            if start is None or duration is None or start < self._seen_us:
                continue
            facts = {
                name: getattr(metrics, name, None)
                for name in (
                    "compile_id",
                    "co_name",
                    "co_filename",
                    "co_firstlineno",
                    "is_forward",
                    "graph_op_count",
                    "guard_count",
                    "cache_size",
                    "recompile_reason",
                    "fail_type",
                    "fail_reason",
                    "inductor_fx_local_cache_hit_count",
                )
            }
            facts["restart_reasons"] = sorted(getattr(metrics, "restart_reasons", None) or []) or None
            kind = "recompile" if facts.get("recompile_reason") else "compile"
            file, first = facts["co_filename"], facts["co_firstlineno"]
            events.append(
                HostEvent(
                    threading.get_native_id(),
                    "compile",
                    f"{kind} {facts['co_name'] or 'backward graph'}",
                    int(start) * 1000,
                    int(duration) * 1000,
                    json.dumps({k: v for k, v in facts.items() if v is not None}, default=str),
                    line=(str(file), int(first), str(facts["co_name"])) if file and first else None,
                )
            )
        if events:
            self._seen_us = max(event.start_ns for event in events) // 1000 + 1
        return events


def match_kernels(names: Sequence[str], top_rows: list[int], graph: Graph) -> list[tuple[int, str]]:
    """(row, handle) of the top-level rows of a compiled graph's range that its source names, in order."""
    found = []
    at = 0
    for row in top_rows:
        if at >= len(graph.handles):
            break
        handle = graph.handles[at]
        base = handle.rsplit(":", 1)[0]
        name = names[row]
        if (
            name.endswith(base)
            or (name.startswith("aten::") and base == "extern_kernels." + name[6:])
            or (base.startswith("cpp_") and _TEMPLATE.fullmatch(name))
        ):
            found.append((row, handle))
            at += 1
    return found
