"""What a line recorder hands over: per thread a flat list of (time, payload) pairs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from types import CodeType
from typing import Any, Protocol

POP = None
"""Payload: the innermost frame ended (return, yield, exception)."""

COARSE = 0
"""Payload: the innermost frame's lines are no longer recorded (back-off); its function is all that is known."""

CLEAR = -1
"""Payload: forget every frame of this thread; the chain that is running follows as pushes."""

LOST = -2
"""Payload: recording of this thread was switched off (back-off). LOST - n says that of the frames running then the
outermost n were still running when recording was taken up: until then, the innermost of those is known, coarsely."""

LIKELY = -1_000_000_000
"""Payload: LIKELY - line says that the innermost frame called a library at this line, in which recording was switched off:
until more is known that is the line, unless the library called code of the program again."""

SAME_MODULE = -3
"""Module payload: the call of a module that is nobody's (a compiled graph) began; the innermost one stays what it was."""

SKIPPED_CHUNK = 8
"""One time is noted for this many calls of code that is not recorded: their cost is known, and so is when it was paid."""


@dataclass(slots=True)
class ThreadRecords:
    """Records of one thread. `records` alternates time_ns and payload: a code object (frame entered), a line number
    from 1 (line of the innermost frame), POP, COARSE, CLEAR, LOST - n or LIKELY - line. `modules` alternates time_ns and the key of the
    nn.Module whose call began (from 1), SAME_MODULE, 0 where the innermost call ended, or CLEAR. `skipped` holds the time of
    every SKIPPED_CHUNKth call that was traced but not recorded."""

    native_id: int
    ident: int
    name: str
    records: list[Any] = field(default_factory=list)
    finished: bool = False
    modules: list[int] = field(default_factory=list)
    skipped: list[int] = field(default_factory=list)


class LineRecorder(Protocol):
    """What both recorders offer. All times are time.time_ns()."""

    method: str
    hot: dict[CodeType, int]
    switched_off: int
    on_switched_off: Callable[[], None] | None
    costs: tuple[float, float]
    """Nanoseconds of a traced call and of a record on this machine."""
    displaced: int
    """How often another tracer took over while recording."""
    base_code: CodeType | None

    def start(self, frame: Any) -> None:
        """Begin on this thread with `frame` and its callers already running."""

    def pause(self) -> None:
        """Stop tracing this thread while our own code works; frames stay known."""

    def resume(self, frame: Any) -> None:
        """Go on after `pause`."""

    def take(self) -> list[ThreadRecords]:
        """Hand over and forget everything recorded so far."""

    def at_next_line(self, frame: Any, action: Any) -> bool:
        """Run `action()` on this thread when the innermost recorded frame from `frame` outwards reaches its next line;
        False where that cannot be arranged."""

    def take_up(self, frame: Any, at_step: bool = False) -> bool:
        """Record again on this thread where a hot loop had switched recording off; False while it still runs."""

    def pin(self, frame: Any, likely: bool = False) -> int | None:
        """A call begins whose line is to be known and which calls no code of the program: where recording rests on this
        thread, state the lines of `frame` and its callers, and let it rest meanwhile where that saves anything. `likely`
        lines are stated where the call may come back to code of the program. Returns what `unpin` wants; None where there
        is nothing to do."""

    def unpin(self, frame: Any, token: int) -> None:
        """That call ended."""

    def tick(self, frame: Any) -> None:
        """This thread runs Python code, with `frame` the innermost, and has done so for a while."""

    def stop(self) -> None:
        """End for good and restore what was there before."""
