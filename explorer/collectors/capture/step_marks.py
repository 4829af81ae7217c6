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

    def __init__(
        self,
        on_step: Callable[[], None],
        on_begin: Callable[[], None] | None = None,
        on_end: Callable[[], None] | None = None,
    ) -> None:
        """`on_begin` and `on_end` surround the steps of optimizers in which no user code can run."""
        self._on_step = on_step
        self._on_begin = on_begin
        self._on_end = on_end
        self._before: Any = None
        self._leader: Any = None
        self._other: Any = None
        self._other_count = 0
        self._handle: Any = None

    def start(self) -> None:
        """Install the hook; without the hook in this version of torch there are no marks."""
        try:
            from torch.optim.optimizer import (
                register_optimizer_step_post_hook,
                register_optimizer_step_pre_hook,
            )
        except ImportError:
            return
        if self._on_begin is not None:
            self._before = register_optimizer_step_pre_hook(self._begins)
        self._handle = register_optimizer_step_post_hook(self._stepped)

    def stop(self) -> None:
        if self._handle is not None:
            self._handle.remove()
            self._handle = None
        if self._before is not None:
            self._before.remove()
            self._before = None

    def _begins(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        try:
            if self._on_begin is not None and _is_torchs_own(optimizer, args, kwargs):
                self._on_begin()
        except Exception:
            self.stop()

    def _stepped(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        try:
            if self._on_end is not None:
                self._on_end()
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


class LoaderMarks:
    """Calls `on_batch` whenever the program asks a DataLoader for its next batch: where one iteration ends and the next
    begins in a program without optimizer (inference, evaluation). `came` is called when it has the batch."""

    def __init__(self, on_batch: Callable[[], None], came: Callable[[], None]) -> None:
        self._on_batch = on_batch
        self._came = came
        self._original: Any = None
        self._wrapper: Any = None

    def start(self) -> None:
        try:
            from torch.utils.data.dataloader import _BaseDataLoaderIter
        except ImportError:
            return
        original = _BaseDataLoaderIter.__next__
        on_batch, came = self._on_batch, self._came

        def __next__(loader: Any) -> Any:
            on_batch()
            try:
                return original(loader)
            finally:
                came()

        self._original, self._wrapper = original, __next__
        _BaseDataLoaderIter.__next__ = __next__  # type: ignore[method-assign,assignment]

    def stop(self) -> None:
        """Put the original back, unless somebody else wrapped it since."""
        if self._wrapper is None:
            return
        from torch.utils.data.dataloader import _BaseDataLoaderIter

        if _BaseDataLoaderIter.__next__ is self._wrapper:
            _BaseDataLoaderIter.__next__ = self._original  # type: ignore[method-assign]
        self._wrapper = None


def _is_torchs_own(optimizer: Any, args: Any, kwargs: Any) -> bool:
    """One of torch's optimizers, without a closure and without hooks of the program: no user code runs in its step."""
    if not type(optimizer).__module__.startswith("torch.optim") or kwargs or len(args) > 1:
        return False
    if args and args[0] is not optimizer:
        return False
    from torch.optim import optimizer as module

    hooks = (
        getattr(optimizer, "_optimizer_step_pre_hooks", None),
        getattr(optimizer, "_optimizer_step_post_hooks", None),
    )
    shared = (
        getattr(module, "_global_optimizer_pre_hooks", {}),
        getattr(module, "_global_optimizer_post_hooks", {}),
    )
    # Tensor subclasses (DTensor and the like) run Python of their own for every op.
    plain = all(
        type(p).__module__ in ("torch", "torch.nn.parameter")
        for g in optimizer.param_groups[:1]
        for p in g["params"][:1]
    )
    return not any(hooks) and all(len(group) <= 1 for group in shared) and plain
