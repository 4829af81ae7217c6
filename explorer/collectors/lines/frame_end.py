"""Notices that a Python frame ends while nothing is traced.

A frame that ends lets go of its trace function. One that nobody else holds is told so by the interpreter (`__del__`), at once
and at no cost meanwhile. A frame that a traceback or a variable keeps ends later by this measure; generators end when they
are exhausted, not when they yield.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FrameType
from typing import Any

_RESUMED = 0x20 | 0x80 | 0x100 | 0x200
"""Code flags of generators, coroutines, iterable coroutines and asynchronous generators."""


raise_soon: Callable[[BaseException], None] | None = None
"""Raises an error in the program's main thread, soon: set by whoever can. The interpreter drops what is raised at the end of a
frame, but a signal handler of the program may have raised it there."""


class FrameEnd:
    """To be set as `f_trace` of a frame, and held by nothing else. `action` is called with it when the frame ends."""

    __slots__ = ("action", "caller")

    def __init__(self, action: Callable[[FrameEnd], None], caller: FrameType | None) -> None:
        self.action: Callable[[FrameEnd], None] | None = action
        self.caller = caller
        """The frame that goes on then; it outlives this one, so holding it keeps nothing alive."""

    def __call__(self, frame: FrameType, event: str, arg: Any) -> None:
        """Tracing goes on although nobody took this away: nothing to do."""

    def __del__(self) -> None:
        action, self.action = self.action, None
        if action is None:
            return
        try:
            action(self)
        except BaseException as error:
            if raise_soon is None:
                raise
            raise_soon(error)


def can_be_watched(frame: FrameType) -> bool:
    """Whether leaving this frame is its end: not so for generators and coroutines."""
    return not frame.f_code.co_flags & _RESUMED


def forget_end(frame: FrameType) -> None:
    """Take the watch off a frame without telling."""
    watch = frame.f_trace
    if isinstance(watch, FrameEnd):
        watch.action = None
        frame.f_trace = None
