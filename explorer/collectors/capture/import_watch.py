"""Do something when a module has been imported, without importing it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from types import ModuleType
from typing import Any


class ImportWatch:
    """A finder that finds nothing itself: it lets the real finders find the module, and acts when it is loaded."""

    def __init__(self, module: str, action: Callable[[ModuleType], None]) -> None:
        self.module = module
        self._action = action

    def start(self) -> None:
        """Act at once where the module is there already."""
        loaded = sys.modules.get(self.module)
        if loaded is not None:
            self._act(loaded)
        else:
            sys.meta_path.insert(0, self)  # type: ignore[arg-type]

    def stop(self) -> None:
        if self in sys.meta_path:
            sys.meta_path.remove(self)  # type: ignore[arg-type]

    def find_spec(self, name: str, path: Any = None, target: ModuleType | None = None) -> Any:
        """Called by the import system."""
        if name != self.module:
            return None
        self.stop()
        spec = None
        for finder in list(sys.meta_path):
            find = getattr(finder, "find_spec", None)
            spec = find(name, path, target) if find is not None else None
            if spec is not None:
                break
        loader: Any = getattr(spec, "loader", None)
        execute = getattr(loader, "exec_module", None)
        if spec is None or execute is None:
            return spec

        def exec_module(module: ModuleType) -> None:
            try:
                del loader.exec_module
            except AttributeError:
                loader.exec_module = execute
            execute(module)
            self._act(module)

        # A loader without attributes of its own (built-in, frozen) imports the module unwatched.
        with suppress(AttributeError, TypeError):
            loader.exec_module = exec_module
        return spec

    def _act(self, module: ModuleType) -> None:
        try:
            self._action(module)
        except Exception as error:
            print(f"neuron-explorer: {self.module}: {type(error).__name__}: {error}", file=sys.stderr)
