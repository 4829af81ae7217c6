"""Which nn.Module is which: keys for the line recorder, paths below the root module for the run.

The recorder asks for a key when nn.Module.__call__ begins; the path comes from walking the root (the outermost module of
a call) once. Modules are held weakly: recording keeps no model alive.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import Any

from explorer.collectors.lines.records import SAME_MODULE
from explorer.model import ids

MAX_WALKS = 50
"""Walks of one root, when modules appear that it did not hold before."""

_COMPILED = "torch._dynamo.eval_frame"
"""Where the module is made that torch.compile puts around another one, which stays what it is."""


@dataclass(slots=True)
class _Known:
    reference: Any
    key: int


class ModulePaths:
    """Keys count from 1; `module_ids[key]` is the id in the table `modules`, 0 for key 0."""

    def __init__(self) -> None:
        self.module_ids: list[int] = [0]
        self._known: dict[int, _Known] = {}
        self._root: Any = None
        self._walks: dict[int, int] = {}
        self._rows: dict[int, dict[str, Any]] = {}
        self._written: set[int] = set()

    def key(self, module: Any, outermost: bool) -> int:
        """Key of a module whose call begins; SAME_MODULE for a graph that a compiler made of somebody's modules."""
        made_by = type(module).__module__
        if made_by.startswith("torch.fx."):
            return SAME_MODULE
        if made_by == _COMPILED:
            module = module._orig_mod
        known = self._known.get(id(module))
        if known is not None and known.reference() is module:
            if outermost:
                self._root = known.reference
            return known.key
        if outermost:
            self._root = weakref.ref(module)
        root = self._root() if self._root is not None else None
        if root is not None and self._walks.get(id(root), 0) < MAX_WALKS:
            self._walks[id(root)] = self._walks.get(id(root), 0) + 1
            self._walk(root)
            known = self._known.get(id(module))
            if known is not None and known.reference() is module:
                return known.key
        # Called inside a root that does not own it (a functional wrapper, a module kept in a plain list).
        self._walk(module)
        return self._known[id(module)].key

    def _walk(self, root: Any) -> None:
        of_path: dict[str, int] = {}
        for path, module in root.named_modules():
            if type(module).__module__ == _COMPILED:
                module = module._orig_mod
            path = ".".join(name for name in path.split(".") if name != "_orig_mod")
            class_name = type(module).__qualname__
            above = of_path.get(path.rpartition(".")[0]) if path else None
            module_id = ids.module_id(path, class_name)
            of_path[path] = module_id
            known = self._known.get(id(module))
            if known is not None and known.reference() is module:
                continue
            self._rows[module_id] = {
                "module_id": module_id,
                "path": path,
                "class_name": class_name,
                "parent_id": above,
            }
            self._known[id(module)] = _Known(weakref.ref(module), len(self.module_ids))
            self.module_ids.append(module_id)

    def placed(self, module_id: int, traced_in: int, entering: int) -> int:
        """Of a module that a compiled graph was made of, the one that its call computes: a graph traced while `traced_in` was
        running serves any module of the same make, `entering`. That one where nothing is known below it."""
        if module_id == traced_in or module_id not in self._rows:
            return entering
        if not traced_in or not entering or traced_in == entering:
            return module_id
        row, path = self._rows[module_id], self._rows[traced_in]["path"]
        if path and not row["path"].startswith(path + "."):
            return module_id
        below = row["path"][len(path) + 1 :] if path else row["path"]
        above = self._rows[entering]["path"]
        there = ids.module_id(f"{above}.{below}" if above else below, row["class_name"])
        return there if there in self._rows else entering

    def common(self, module_ids: list[int]) -> int:
        """The innermost module that holds all of these; 0 where there is none."""
        chains = [self._enclosing(module_id) for module_id in dict.fromkeys(module_ids)]
        shared = set(chains[0]).intersection(*chains[1:]) if chains else set()
        return next((module_id for module_id in chains[0] if module_id in shared), 0) if chains else 0

    def _enclosing(self, module_id: int | None) -> list[int]:
        chain: list[int] = []
        while module_id and module_id in self._rows and module_id not in chain:
            chain.append(module_id)
            module_id = self._rows[module_id]["parent_id"]
        return chain

    def take(self, used: set[int]) -> list[dict[str, Any]]:
        """Rows not yet written of the modules with these ids and of those that enclose them."""
        rows = []
        waiting = [module_id for module_id in used if module_id]
        while waiting:
            module_id = waiting.pop()
            if module_id in self._written or module_id not in self._rows:
                continue
            self._written.add(module_id)
            row = self._rows[module_id]
            rows.append(row)
            if row["parent_id"] is not None:
                waiting.append(row["parent_id"])
        return rows


def module_call_code() -> Any:
    """The code object behind nn.Module.__call__; None where this version of torch has another way."""
    import torch

    call = getattr(torch.nn.Module, "_wrapped_call_impl", None)
    return getattr(call, "__code__", None)
