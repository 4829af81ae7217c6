"""Line recording rests while torch.compile compiles: millions of calls inside the compiler, and no line of the program.

What the compiler takes stays with the line that called the compiled function.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from explorer.collectors.capture import guard
from explorer.collectors.capture.import_watch import ImportWatch


class CompilePauses:
    """Calls `begin` on a thread that starts to compile and `end` when that is over, once for nested compilations."""

    def __init__(self, begin: Callable[[], None], end: Callable[[], None]) -> None:
        self._begin = begin
        self._end = end
        self._inside = threading.local()
        self._undo: list[tuple[Any, Any]] = []
        self._watch = ImportWatch("torch._dynamo.callback", self._install)

    def start(self) -> None:
        self._watch.start()

    def stop(self) -> None:
        """Put the original back, unless somebody else replaced it since."""
        self._watch.stop()
        for handler, ours in self._undo:
            if vars(handler).get("install_callbacks") is ours:
                del handler.install_callbacks
        self._undo.clear()

    def _install(self, module: ModuleType) -> None:
        # Callbacks that are registered in the ordinary way are dropped by torch.compiler.reset().
        handler = module.callback_handler
        original = handler.install_callbacks

        @contextmanager
        def install_callbacks(*args: Any, **kwargs: Any) -> Iterator[None]:
            nested = getattr(self._inside, "compilation", False)
            if not nested:
                self._inside.compilation = True
                guard.quietly(self._begin)
            try:
                with original(*args, **kwargs):
                    yield
            finally:
                if not nested:
                    self._inside.compilation = False
                    guard.quietly(self._end)

        handler.install_callbacks = install_callbacks
        self._undo.append((handler, install_callbacks))
