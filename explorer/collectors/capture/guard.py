"""One capture per process: torch.profiler loses data silently when nested and crashes when used from two threads."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from explorer.collectors.capture.child_exit import prepare_child_exit

if TYPE_CHECKING:
    from explorer.collectors.capture.session import Session

_lock = threading.Lock()
_active: Session | None = None
_leave_safely: Callable[[], None] | None = None


def refusal() -> str | None:
    """Why a capture cannot start now, or None."""
    if _active is not None:
        return "a capture is already running in this process"
    try:
        import torch

        if torch.autograd._profiler_enabled():
            return "another torch profiler is already active in this process"
    except (ImportError, AttributeError):
        pass
    return None


def acquire(session: Session) -> str | None:
    """Make `session` the active one; returns the reason where that is refused."""
    global _active
    with _lock:
        reason = refusal()
        if reason is None:
            _active = session
            _watch_forks()
        return reason


def release(session: Session) -> None:
    """The session is over."""
    global _active
    with _lock:
        if _active is session:
            _active = None


def active() -> Session | None:
    """The running session of this process."""
    return _active


def _watch_forks() -> None:
    global _leave_safely
    if _leave_safely is None and hasattr(os, "register_at_fork"):
        _leave_safely = prepare_child_exit()
        os.register_at_fork(after_in_child=_in_child)


def _in_child() -> None:
    """A forked child records nothing and must never touch the parent's run."""
    global _active, _lock
    _lock = threading.Lock()
    session, _active = _active, None
    if _leave_safely is not None:
        _leave_safely()
    if session is not None:
        session.forget_in_child()


def quietly(action: Any, *args: Any) -> Any:
    """Call something that must never disturb the program; its failure is not an answer."""
    try:
        return action(*args)
    except Exception:
        return None
