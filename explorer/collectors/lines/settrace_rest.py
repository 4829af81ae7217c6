"""Rests of one thread's recording under sys.settrace, where that costs too much.

A rest is switching the thread's tracing off, since with it on even code that nobody looks at runs its slow way. What ends
it is the end of a frame (`FrameEnd`): of the hot function, of the call into a library, or of a caller further out where
those are too short to be worth it; or the recorder's `take_up`, from a timer or at a step's end.
"""

from __future__ import annotations

import sys
import threading
import time
from types import CodeType, FrameType
from typing import TYPE_CHECKING

from explorer.collectors.lines.frame_end import FrameEnd, can_be_watched
from explorer.collectors.lines.records import CLEAR, COARSE, LIKELY, LOST, POP

if TYPE_CHECKING:
    from explorer.collectors.lines.settrace_recorder import SettraceRecorder
    from explorer.collectors.lines.settrace_thread import TracedThread

WORTH_NS = 200_000
"""Rests shorter than this are not worth their own cost: later ones end with a caller."""

SHORT_OF_ONE = 2
SHORT_IN_A_ROW = 6
"""After so many too short rests of the same code, or of whatever code in a row, one caller further out."""


class Rest:
    """Whether a thread rests, since when and until what. Belongs to that thread; only `settle` may be called by another."""

    def __init__(self, recorder: SettraceRecorder, thread: TracedThread) -> None:
        self.off = False
        """Tracing rests on this thread."""
        self.busy = False
        """At a change of state, in which calls that the interpreter makes in between must not meddle."""
        self._recorder = recorder
        self._thread = thread
        self._token = 0
        self._off_ns = 0
        self._key: CodeType | None = None
        self._watch = 0
        """The watch on the frame whose end ends the rest, by its identity: holding it would keep it from noticing."""
        self._end_is_recorded = False
        self._library: tuple[CodeType, int] | None = None
        """Of a rest in a library: the code that was called, and the frame that called it, by its identity."""
        self._short: dict[CodeType, int] = {}
        self._short_in_a_row = 0
        self._lost: tuple[int, list[tuple[int, CodeType]]] | None = None

    def forget_short(self) -> None:
        """Try rests of single frames again."""
        self._short.clear()

    # -- the beginning

    def begin(self, frame: FrameType, hot: FrameType) -> None:
        """Rest from here on: `frame` is the innermost frame, `hot` the one to be left alone if that is worth it."""
        recorder = self._recorder
        self.busy = True
        self._token += 1
        self._off_ns = time.monotonic_ns()
        self._key = hot.f_code
        self._library = None
        self._thread.budget.rests()
        end = self._end_to_wait_for(hot)
        if end is None:
            self._lose(frame)
        else:
            self._thread.leave_modules(frame, end)
            self._state(frame, end)
            token = self._token
            watch = FrameEnd(lambda watch: self._told(watch, token), end.f_back)
            self._watch = id(watch)
            end.f_trace = watch
        self.off = True
        recorder.stop_tracing()
        self.busy = False
        recorder.rests(self._thread)

    def in_library(self, frame: FrameType) -> None:
        """Rest from here on in a library whose innermost frame this is: until the program's call of it returns, or, where
        that library has called the program's code before, until this frame ends."""
        recorder = self._recorder
        outermost, outer = frame, frame.f_back
        while (
            outer is not None and outer.f_code is not recorder.base_code and not recorder.is_recorded(outer)
        ):
            outermost, outer = outer, outer.f_back
        if outer is None or outer.f_code is recorder.base_code or outermost.f_code in recorder.calls_back:
            outermost = frame
        self.begin(frame, outermost)

    def _end_to_wait_for(self, frame: FrameType) -> FrameType | None:
        """The frame whose end ends the rest: this one, or a caller where such rests were too short."""
        outwards = max(
            self._short.get(frame.f_code, 0) // SHORT_OF_ONE, self._short_in_a_row // SHORT_IN_A_ROW
        )
        end: FrameType | None = frame
        while end is not None and end.f_code is not self._recorder.base_code:
            if can_be_watched(end):
                if outwards == 0:
                    return end
                outwards -= 1
            end = end.f_back
        return None

    def _lose(self, frame: FrameType) -> None:
        records = self._thread.own.records
        self._lost = (len(records) + 1, self._recorder.chain(frame))
        records.extend((time.time_ns(), LOST))
        self._thread.forget_modules()

    def _state(self, frame: FrameType, end: FrameType) -> None:
        """What is known until `end` ends: the innermost recorded frame at or outside it."""
        recorder = self._recorder
        now = time.time_ns()
        payloads: list[int | None] = []
        at: FrameType | None = frame
        while at is not None and at is not end:
            if recorder.is_recorded(at):
                payloads.append(POP)
            at = at.f_back
        self._end_is_recorded = recorder.is_recorded(end)
        known = recorder.recorded_from(end)
        if known is not None:
            likely = known is not end and not payloads
            payloads.append(LIKELY - known.f_lineno if likely else COARSE)
            if likely:
                self._library = (end.f_code, id(known))
        for payload in payloads:
            self._thread.own.records.extend((now, payload))

    # -- exact for a moment

    def pin(self, frame: FrameType | None, likely: bool) -> int | None:
        """State the lines that the frames from here outwards are at, although recording rests; they hold until `unpin`
        gets what this returns, or are `likely` to. None where that is not needed."""
        if not self.off or self.busy:
            return None
        self.busy = True
        self.settle(frame)
        self._thread.own.records.extend((time.time_ns(), CLEAR))
        running = []
        while frame is not None and frame.f_code is not self._recorder.base_code:
            if self._recorder.is_recorded(frame):
                running.append(frame)
            frame = frame.f_back
        for one in reversed(running):
            self._thread.push(one)
        if likely and running:
            self._thread.own.records.extend((time.time_ns(), LIKELY - running[0].f_lineno))
        self.busy = False
        return self._token

    def unpin(self, frame: FrameType | None, token: int) -> None:
        """The lines stated by `pin` hold no longer: the same rest goes on, unless it has ended meanwhile."""
        if token != self._token or not self.off or self.busy or frame is None:
            return
        self.busy = True
        end: FrameType | None = frame
        while end is not None and id(end.f_trace) != self._watch:
            end = end.f_back
        if end is None:
            # Nothing on this stack ends it, only being taken up.
            self._token += 1
            self._lose(frame)
        else:
            self._state(frame, end)
        self.busy = False

    # -- the end

    def _told(self, watch: FrameEnd, token: int) -> None:
        try:
            self._ended(watch, token)
        except BaseException:
            # A signal handler of the program raised in the middle: recording is taken up later.
            self.busy = False
            raise

    def _ended(self, watch: FrameEnd, token: int) -> None:
        """The frame that this rest was for has ended."""
        recorder, thread = self._recorder, self._thread
        if token != self._token or not self.off or recorder.stopped or thread.displaced or thread.paused:
            return
        if threading.get_ident() != thread.own.ident or sys.gettrace() is not None:
            return
        # Below this one are `_told`, the lambda's and FrameEnd's; below them the program's, unless its thread ends.
        here = sys._getframe(3).f_back
        self.busy = True
        if token != self._token:
            # Somebody else ended the rest just now.
            self.busy = False
            return
        budget = thread.budget
        budget.rested()
        if time.monotonic_ns() - self._off_ns >= WORTH_NS:
            self._short_in_a_row = 0
        elif self._key is not None:
            self._short[self._key] = self._short.get(self._key, 0) + 1
            self._short_in_a_row += 1
        if here is None:
            self.busy = False
            return
        if here is not watch.caller:
            # It ended before: a traceback kept it.
            self.end_anywhere(here)
            return
        self._go_on(here)
        # After a call into a library there may be the next at once.
        if budget.in_debt or (self._library is not None and budget.credit_ns < 0):
            self.begin(here, here)

    def _go_on(self, frame: FrameType) -> None:
        """The rest ended in this frame, whose callee was waited for."""
        thread = self._thread
        if self._end_is_recorded:
            thread.own.records.extend((time.time_ns(), POP))
        else:
            known = self._recorder.recorded_from(frame)
            if known is not None:
                thread.own.records.extend((time.time_ns(), known.f_lineno))
        self.off = False
        self._token += 1
        if thread.budget.credit_ns < 0:
            thread.look_soon()
        self.busy = False
        self._recorder.trace(thread.enter)

    def learn(self, frame: FrameType | None) -> None:
        """A rest that waited for a library: does that call the program's code?"""
        frame = self._recorder.recorded_from(frame)
        if self._library is not None and frame is not None and id(frame) != self._library[1]:
            self._recorder.calls_back.add(self._library[0])

    def end_anywhere(self, frame: FrameType | None) -> None:
        """Record from here on, whatever was known of this thread."""
        thread = self._thread
        self.busy = True
        self.off = False
        self._token += 1
        self.settle(frame)
        thread.own.records.extend((time.time_ns(), CLEAR))
        thread.forget_modules()
        if not thread.displaced:
            thread.push_running(frame)
            if thread.budget.credit_ns < 0:
                thread.look_soon()
        self.busy = False
        if not thread.displaced:
            self._recorder.trace(thread.enter)

    def settle(self, frame: FrameType | None) -> None:
        """What was surely running while a thread was not recorded: the frames of before that are still there."""
        lost, self._lost = self._lost, None
        if lost is None:
            return
        at, before = lost
        common = 0
        for old, new in zip(before, self._recorder.chain(frame)):
            if old != new:
                break
            common += 1
        records = self._thread.own.records
        if at < len(records) and records[at] == LOST:
            records[at] = LOST - common
