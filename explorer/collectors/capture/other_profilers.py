"""The program's own torch.profiler while we record: torch has one session per process, and the program's comes first.

Without this the second session would silently take the first one's data. Before another session starts, ours hands over
its window; it records again at the first step after that session has ended.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any


class OtherProfilers:
    """Watches torch.autograd.profiler.profile; `is_ours` tells our own sessions, `give_way` closes our window."""

    def __init__(self, is_ours: Callable[[Any], bool], give_way: Callable[[], None]) -> None:
        self._is_ours = is_ours
        self._give_way = give_way
        self._undo: list[tuple[str, Any, Any]] = []

    def start(self) -> None:
        from torch.autograd.profiler import profile

        for name in ("_prepare_trace", "_start_trace"):
            original = getattr(profile, name, None)
            if original is not None:
                wrapper = self._wrapper(original)
                setattr(profile, name, wrapper)
                self._undo.append((name, wrapper, original))

    def stop(self) -> None:
        """Put the originals back, unless somebody else replaced them since."""
        from torch.autograd.profiler import profile

        for name, wrapper, original in self._undo:
            if getattr(profile, name, None) is wrapper:
                setattr(profile, name, original)
        self._undo.clear()

    def _wrapper(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def start(session: Any, *args: Any, **kwargs: Any) -> Any:
            if not self._is_ours(session):
                # Where that fails, ours is lost; the program's still works.
                with suppress(Exception):
                    self._give_way()
            return original(session, *args, **kwargs)

        return start


def another_is_running() -> bool:
    """Whether a torch profiler session is active."""
    try:
        import torch

        return bool(torch.autograd._profiler_enabled())
    except AttributeError:
        return False
