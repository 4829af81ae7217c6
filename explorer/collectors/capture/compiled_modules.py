"""torch.compile: which nn.Module each graph node was traced in.

Dynamo enters the modules of a graph in a certain order, the same in every process, and each node keeps the key of the call it
was traced in. A graph that comes from a cache knows its kernels' calls by their places in that order only; which modules those
are is what Dynamo has entered in this process. One graph may serve many modules (layers compiled one by one): modules are known
by where they stand below the module whose call enters the graph.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from types import FrameType, ModuleType
from typing import Any, NamedTuple

from explorer.collectors.capture.import_watch import ImportWatch
from explorer.collectors.capture.module_paths import ModulePaths, module_call_code

_ENTERING = -1
"""Place of a node that no module inside the graph has computed: it is of the module whose call enters the graph."""

_KEPT = "neuron_explorer_modules"
"""Attribute of a CompiledFxGraph, saved in caches with it: classes of the modules in the order they were entered, and the
places in that order of each kernel's nodes."""


class Traced(NamedTuple):
    """A module by its id, and the one that entered the graph when it was traced; 0 is none."""

    module_id: int
    entering_id: int


@dataclass(slots=True)
class _Trace:
    """What Dynamo entered while it traced one graph: Dynamo's keys of the calls, and the modules."""

    output: Any
    """A weak reference to what Dynamo traces into."""
    entering_id: int
    places: dict[str, int] = field(default_factory=dict)
    classes: list[str] = field(default_factory=list)
    module_ids: list[int] = field(default_factory=list)

    def traced(self, place: int) -> Traced:
        module_id = self.entering_id if place == _ENTERING else self.module_ids[place]
        return Traced(module_id, self.entering_id)


class CompiledModules:
    """Modules of the nodes of graphs that are compiled while a capture runs."""

    def __init__(self, paths: ModulePaths) -> None:
        self._paths = paths
        self._traces: dict[str, _Trace] = {}
        self._undo: list[tuple[Any, Any, Any]] = []
        self._watch = ImportWatch("torch._dynamo.variables.nn_module", self._install)

    def start(self) -> None:
        self._watch.start()

    def stop(self) -> None:
        self._watch.stop()
        for owner, ours, original in self._undo:
            if owner.record_nn_module_stack is ours:
                owner.record_nn_module_stack = original
        self._undo.clear()

    def of_nodes(self, nodes: Sequence[Any]) -> list[Traced | None]:
        """The module of each node of a graph; None where it is not known."""
        trace = self._traces.get(compile_id()) or self._holding(nodes)
        if trace is None:
            return [None] * len(nodes)
        places = [_place(node.meta, trace) for node in nodes]
        return [trace.traced(place) if place is not None else None for place in places]

    def _holding(self, nodes: Sequence[Any]) -> _Trace | None:
        """The last trace that entered all modules of a graph: its code may be made when it is first called only."""
        calls = {call for node in nodes if (call := _call(node.meta)) is not None}
        if not calls:
            return None
        return next((one for one in reversed(self._traces.values()) if calls <= one.places.keys()), None)

    def keep(self, compiled: Any, graph: Any, kernels: dict[str, list[str]]) -> None:
        """Note at a graph that Inductor has just made the modules of its `kernels` (names of their nodes in `graph`)."""
        trace = self._traces.get(compile_id())
        if trace is None:
            return
        place_of = {node.name: _place(node.meta, trace) for node in graph.nodes}
        places = {
            handle: [place for name in names if (place := place_of.get(name)) is not None]
            for handle, names in kernels.items()
        }
        setattr(compiled, _KEPT, (list(trace.classes), places))

    def of_kernels(self, compiled: Any) -> dict[str, list[Traced]]:
        """By handle, the modules of the nodes of each kernel of a graph, fresh or from a cache. Empty where the graph was
        saved without them, or was made of other modules than Dynamo has entered here."""
        kept = getattr(compiled, _KEPT, None)
        trace = self._traces.get(compile_id())
        if kept is None or trace is None or kept[0] != trace.classes:
            return {}
        return {handle: [trace.traced(place) for place in places] for handle, places in kept[1].items()}

    def _install(self, module: ModuleType) -> None:
        original = module.record_nn_module_stack
        modules = self

        @contextmanager
        def record_nn_module_stack(key: Any, source: Any, tx: Any, mod: Any) -> Iterator[None]:
            with original(key, source, tx, mod):
                # Internals of another version: kernels stay with the module that enters the graph.
                with suppress(Exception):
                    modules._enter(tx, mod)
                yield

        module.record_nn_module_stack = record_nn_module_stack  # type: ignore[attr-defined]
        self._undo.append((module, record_nn_module_stack, original))

    def _enter(self, tx: Any, module: Any) -> None:
        trace = self._traces.get(compile_id())
        if trace is None or trace.output() is not tx.output:
            # Dynamo starts over with another output where it finds that a graph must break.
            self._traces.pop(compile_id(), None)
            trace = self._traces[compile_id()] = _Trace(weakref.ref(tx.output), self._entering())
        outermost = not trace.entering_id and len(tx.nn_module_stack) == 1
        key = self._paths.key(module, outermost)
        trace.places[next(reversed(tx.nn_module_stack))] = len(trace.module_ids)
        trace.classes.append(type(module).__qualname__)
        trace.module_ids.append(self._paths.module_ids[key] if key > 0 else trace.entering_id)

    def _entering(self) -> int:
        """Id of the module whose call is running; 0 where there is none."""
        call = module_call_code()
        running = []
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            if frame.f_code is call:
                running.append(frame.f_locals["self"])
            frame = frame.f_back
        # The outermost names the others, also where it was called while nothing was recorded.
        entering = 0
        for depth, module in enumerate(reversed(running)):
            key = self._paths.key(module, depth == 0)
            entering = self._paths.module_ids[key] if key > 0 else entering
        return entering


def compile_id() -> str:
    """What is being compiled, as in the name of its range: frame/times compiled."""
    guards = sys.modules.get("torch._guards")
    return str(guards.CompileContext.current_compile_id()) if guards is not None else ""


def _place(meta: dict[str, Any], trace: _Trace) -> int | None:
    """Place of a node's call among those of its graph; None for nodes of the compiler's own, and of other graphs."""
    if (call := _call(meta)) is not None:
        return trace.places.get(call)
    if "fwd_nn_module_stack" in meta:
        return _ENTERING
    # Backward nodes without a forward node add up gradients.
    of_program = meta.get("stack_trace") and meta.get("partitioner_tag") != "is_backward"
    return _ENTERING if of_program and not meta.get("autograd_backward") else None


def _call(meta: dict[str, Any]) -> str | None:
    """Dynamo's key of the innermost call that a node, or its forward node, was traced in."""
    stack = meta.get("nn_module_stack") or meta.get("fwd_nn_module_stack")
    return next(reversed(stack)) if stack else None
