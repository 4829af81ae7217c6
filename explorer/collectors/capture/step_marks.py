"""Step ends that the program did not say itself: the optimizer's steps, seen through torch's global hook."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

ADOPT_AFTER = 2


class OptimizerMarks:
    """Calls `on_step` after every step of the leading optimizer.

    The leading one is the first that steps; another takes over when it steps twice while the leader does not step or
    no longer exists (a program with several optimizers, or several training runs in one program).
    """

    def __init__(self, on_step: Callable[[], None]) -> None:
        self._on_step = on_step
        self._leader: Any = None
        self._other: Any = None
        self._other_count = 0
        self._handle: Any = None

    def start(self) -> None:
        """Install the hook; without the hook in this version of torch there are no marks."""
        try:
            from torch.optim.optimizer import register_optimizer_step_post_hook
        except ImportError:
            return
        self._handle = register_optimizer_step_post_hook(self._stepped)

    def stop(self) -> None:
        if self._handle is not None:
            self._handle.remove()
            self._handle = None

    def _stepped(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        try:
            if self._leads(optimizer):
                self._on_step()
        except Exception:
            # A capture must never break a training step.
            self.stop()

    def _leads(self, optimizer: Any) -> bool:
        leader = self._leader() if self._leader is not None else None
        if leader is optimizer:
            self._other_count = 0
            return True
        if leader is None:
            self._leader = weakref.ref(optimizer)
            return True
        other = self._other() if self._other is not None else None
        self._other_count = self._other_count + 1 if other is optimizer else 1
        self._other = weakref.ref(optimizer)
        if self._other_count >= ADOPT_AFTER:
            self._leader, self._other, self._other_count = self._other, None, 0
            return True
        return False
