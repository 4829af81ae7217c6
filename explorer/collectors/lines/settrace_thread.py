"""The trace functions of one thread under sys.settrace, and how they give way where tracing costs too much.

Giving way is switching the thread's tracing off, since with it on even code that nobody looks at runs its slow way. What ends
it is the end of a frame (`FrameEnd`): of the hot function, of the call into a library, or of a caller further out where
those are too short to be worth it; or the recorder's `take_up`, from a timer or at a step's end.
"""

from __future__ import annotations

import dis
import sys
import threading
import time
from collections.abc import Callable
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any

from explorer.collectors.lines.budget import SLOW_CALL_NS, TICK_NS, Budget, Credit
from explorer.collectors.lines.frame_end import FrameEnd, can_be_watched, forget_end
from explorer.collectors.lines.records import CLEAR, COARSE, LIKELY, LOST, POP, SKIPPED_CHUNK, ThreadRecords

if TYPE_CHECKING:
    from explorer.collectors.lines.settrace_recorder import SettraceRecorder

SLICE = 1_000
"""Line events of one code object between two looks at what recording has taken."""

CALM_NS = 20_000
"""Code whose lines take longer than this is not hot, however many it has run."""

CALLS = 500
"""Python calls between two looks."""

FEW_CALLS = 100
"""The same after a rest that ended while recording had taken more than its share."""

WORTH_NS = 200_000
"""Rests shorter than this are not worth their own cost: later ones end with a caller."""

SHORT_OF_ONE = 2
SHORT_IN_A_ROW = 6
"""After so many too short rests of the same code, or of whatever code in a row, one caller further out."""


_LOOPING = frozenset(dis.opmap[name] for name in ("JUMP_BACKWARD", "RESUME"))


class TracedThread:
    """Belongs to the thread that made it; of its methods only `settle` may be called by another."""

    def __init__(self, recorder: SettraceRecorder, own: ThreadRecords, credit: Credit) -> None:
        self.own = own
        self.budget = Budget(credit, *recorder.costs)
        self.off = False
        """Tracing rests on this thread."""
        self.displaced = False
        """Another tracer has it."""
        self.paused = False
        self.busy = False
        """At a change of state, in which calls that the interpreter makes in between must not meddle."""
        self._recorder = recorder
        self._total: dict[CodeType, int] = {}
        self._slice: dict[CodeType, tuple[int, int]] = {}
        self._mark = 0
        self._calls = CALLS
        self._token = 0
        self._off_ns = 0
        self._key: CodeType | None = None
        self._end_is_recorded = False
        self._library: tuple[CodeType, int] | None = None
        """Of a rest in a library: the code that was called, and the frame that called it, by its identity."""
        self._short: dict[CodeType, int] = {}
        self._short_in_a_row = 0
        self._lost: tuple[int, list[tuple[int, CodeType]]] | None = None
        self._depth = 0
        self._make()

    # -- the trace functions

    def _make(self) -> None:
        recorder, own = self._recorder, self.own
        append = own.records.append
        append_skipped = own.skipped.append
        clock = time.time_ns
        files = recorder.files
        more_lines = self._more_lines
        look = self._look_at_call
        classify = recorder.classify
        enter_module = self._enter_module
        module_call = recorder.module_call
        modules_file = recorder.modules_file
        self._locals: dict[int, tuple[CodeType, Callable[..., Any]]] = {}
        locals_of = self._locals
        found = locals_of.get

        def make_local(code: CodeType) -> Callable[..., Any]:
            left = min(SLICE, recorder.line_budget)
            self._slice[code] = (left, self.budget.seen_ns)
            self._total[code] = left

            def local(frame: FrameType, event: str, arg: Any) -> Any:
                nonlocal left
                if event == "line":
                    append(clock())
                    append(frame.f_lineno)
                    left -= 1
                    if left < 0:
                        left = more_lines(frame)
                        if self.off:
                            # What is returned would take the place of the watch on this frame's end.
                            return None
                elif event == "return":
                    append(clock())
                    append(POP)
                elif event == "rearm":
                    left = arg
                return local

            locals_of[id(code)] = (code, local)
            return local

        calls = CALLS
        skipped = 0

        def enter(frame: FrameType, event: str, arg: Any) -> Any:
            nonlocal calls, skipped
            code = frame.f_code
            calls -= 1
            if calls < 0:
                calls = look(frame)
                if self.off:
                    return None
            try:
                entries = files[code.co_filename]
            except KeyError:
                entries = None if classify(frame) == 0 else True
            if entries is None or entries is modules_file:
                skipped += 1
                if skipped == SKIPPED_CHUNK:
                    skipped = 0
                    append_skipped(clock())
                return enter_module(frame) if code is module_call and entries is not None else None
            now = clock()
            append(now)
            append(code)
            append(now)
            append(frame.f_lineno)
            entry = found(id(code))
            return entry[1] if entry is not None else make_local(code)

        def soon() -> None:
            nonlocal calls
            self._calls -= max(0, calls - FEW_CALLS)
            calls = min(calls, FEW_CALLS)

        self.enter = enter
        self._make_local = make_local
        self._look_soon = soon

    def local_of(self, code: CodeType) -> Callable[..., Any]:
        """The trace function of frames of this code."""
        entry = self._locals.get(id(code))
        return entry[1] if entry is not None else self._make_local(code)

    def rearm(self, lines: int, codes: set[CodeType] | None = None) -> None:
        """Give all code, or only these, so many lines again."""
        for code, local in list(self._locals.values()):
            if codes is None or code in codes:
                first = min(lines, SLICE)
                self._slice[code] = (first, self.budget.seen_ns)
                if codes is None:
                    self._total[code] = first
                local(None, "rearm", first)
        if codes is None:
            self._short.clear()

    def _push(self, frame: FrameType) -> None:
        now = time.time_ns()
        self.own.records.extend((now, frame.f_code, now, frame.f_lineno))

    # -- modules

    def _in_module(self, frame: FrameType, event: str, arg: Any) -> Any:
        if event == "return" and self._depth:
            self._leave_module()
        return self._in_module

    def _leave_module(self) -> None:
        self._depth -= 1
        self.own.modules.extend((time.time_ns(), 0))

    def _enter_module(self, frame: FrameType) -> Any:
        module_key = self._recorder.module_key
        assert module_key is not None
        key = module_key(frame.f_locals.get("self"), self._depth == 0)
        self._depth += 1
        self.own.modules.extend((time.time_ns(), key))
        frame.f_trace_lines = False
        return self._in_module

    def _forget_modules(self) -> None:
        self._depth = 0
        self.own.modules.extend((time.time_ns(), CLEAR))

    # -- what it costs

    def _charge(self, calls: int = 0, most_ns: float = 0.0) -> bool:
        """`most_ns`: how much of the time since the last look may be taken for the slow way of a library."""
        records = len(self.own.records) // 2
        # `take` empties the list meanwhile.
        made = records - self._mark if records >= self._mark else records
        self._mark = records
        return self.budget.charge(calls, made, most_ns)

    def _look_at_call(self, frame: FrameType) -> int:
        """The calls until the next look."""
        recorder = self._recorder
        recorded = recorder.is_recorded(frame)
        slow = not recorded and not recorder.is_torch(frame)
        made, self._calls = self._calls, CALLS
        if not self._charge(made, made * SLOW_CALL_NS if slow else 0.0):
            if recorded:
                self._push(frame)
                self._switch_off(frame, frame)
            else:
                self._switch_off(frame, self._library_call(frame))
        return CALLS

    def tick(self, frame: FrameType) -> None:
        """Between two bytecodes of this frame, the innermost, after a stretch in which the interpreter was not let go of: a
        library that loops without a call shows itself in no other way."""
        recorder = self._recorder
        if self.busy or self.off or self.paused or self.displaced or sys.gettrace() is not self.enter:
            return
        if frame.f_code.co_filename == __file__:
            # In the middle of a record.
            return
        if recorder.is_recorded(frame) or recorder.is_torch(frame):
            return
        # Right after a call nobody knows whether compiled code took the time.
        operation = frame.f_code.co_code[frame.f_lasti]
        if operation in _LOOPING and not self._charge(0, TICK_NS):
            self._switch_off(frame, self._library_call(frame))

    def rest_at_once(self, frame: FrameType) -> bool:
        """In a thread that begins with this frame: rest until it ends, where recording has taken too much already."""
        if self.budget.in_debt:
            self._switch_off(frame, frame)
        return self.off

    def _more_lines(self, frame: FrameType) -> int:
        """The lines that code gets which has used up what it had."""
        code = frame.f_code
        recorder = self._recorder
        may_go_on = self._charge()
        if code in recorder.hot_now:
            self._switch_off(frame, frame)
            return 0
        given, since_ns = self._slice[code]
        now_ns = self.budget.seen_ns
        if self._total[code] >= recorder.line_budget and now_ns - since_ns < CALM_NS * given:
            recorder.hot[code] = recorder.hot.get(code, 0) + 1
            recorder.hot_now.add(code)
            self._switch_off(frame, frame)
            return 0
        if not may_go_on:
            recorder.hot.setdefault(code, 1)
            self._switch_off(frame, frame)
        self._slice[code] = (SLICE, now_ns)
        self._total[code] += SLICE
        return SLICE

    # -- rests

    def _library_call(self, frame: FrameType) -> FrameType:
        """Of the library frames from here outwards, the one that code of the program called; this one, where that has
        called the program's code before."""
        recorder = self._recorder
        outermost, outer = frame, frame.f_back
        while (
            outer is not None and outer.f_code is not recorder.base_code and not recorder.is_recorded(outer)
        ):
            outermost, outer = outer, outer.f_back
        if outer is None or outer.f_code is recorder.base_code or outermost.f_code in recorder.calls_back:
            return frame
        return outermost

    def _recorded_from(self, frame: FrameType | None) -> FrameType | None:
        """The innermost recorded frame from this one outwards."""
        recorder = self._recorder
        while frame is not None and frame.f_code is not recorder.base_code:
            if recorder.is_recorded(frame):
                return frame
            frame = frame.f_back
        return None

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

    def _switch_off(self, frame: FrameType, hot: FrameType) -> None:
        """Rest from here on: `frame` is the innermost frame, `hot` the one to be left alone if that is worth it."""
        recorder = self._recorder
        self.busy = True
        self._token += 1
        self._off_ns = time.monotonic_ns()
        self._key = hot.f_code
        self._library = None
        end = self._end_to_wait_for(hot)
        if end is None:
            self._lose(frame)
        else:
            self._state_rest(frame, end)
            token = self._token
            end.f_trace = FrameEnd(lambda watch: self._ended(watch, token), end.f_back)
        self.off = True
        recorder.stop_tracing()
        self.busy = False
        recorder.rests(self)

    def _lose(self, frame: FrameType) -> None:
        records = self.own.records
        self._lost = (len(records) + 1, self._recorder.chain(frame))
        records.extend((time.time_ns(), LOST))
        self._forget_modules()

    def _state_rest(self, frame: FrameType, end: FrameType) -> None:
        """What is known until `end` ends: the innermost recorded frame at or outside it."""
        recorder = self._recorder
        now = time.time_ns()
        payloads: list[int | None] = []
        at: FrameType | None = frame
        while at is not None and at is not end:
            if recorder.is_recorded(at):
                payloads.append(POP)
            elif at.f_code is recorder.module_call and at.f_trace == self._in_module and self._depth:
                self._leave_module()
            at = at.f_back
        self._end_is_recorded = recorder.is_recorded(end)
        known = self._recorded_from(end)
        if known is not None:
            likely = known is not end and not payloads
            payloads.append(LIKELY - known.f_lineno if likely else COARSE)
            if likely:
                self._library = (end.f_code, id(known))
        for payload in payloads:
            self.own.records.extend((now, payload))

    def _ended(self, watch: FrameEnd, token: int) -> None:
        """The frame that this rest was for has ended."""
        recorder = self._recorder
        if token != self._token or not self.off or recorder.stopped or self.displaced or self.paused:
            return
        if threading.get_ident() != self.own.ident or sys.gettrace() is not None:
            return
        # Below this one are the lambda's and FrameEnd's; below them the program's, unless its thread ends.
        here = sys._getframe(2).f_back
        self.busy = True
        if token != self._token:
            # Somebody else ended the rest just now.
            self.busy = False
            return
        self.budget.charge()
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
            self.state_anew(here)
            return
        self._go_on(here)
        # After a call into a library there may be the next at once.
        if self.budget.in_debt or (self._library is not None and self.budget.credit_ns < 0):
            self._switch_off(here, here)

    def _go_on(self, frame: FrameType) -> None:
        """The rest ended in this frame, whose callee was waited for."""
        records = self.own.records
        if self._end_is_recorded:
            records.extend((time.time_ns(), POP))
        else:
            known = self._recorded_from(frame)
            if known is not None:
                records.extend((time.time_ns(), known.f_lineno))
        self.off = False
        self._token += 1
        if self.budget.credit_ns < 0:
            self._look_soon()
        self.busy = False
        self._recorder.trace(self.enter)

    def may_go_on(self) -> bool:
        """Whether recording has rested long enough."""
        self._charge()
        return not self.budget.in_debt

    def learn(self, frame: FrameType | None) -> None:
        """A rest that waited for a library: does that call the program's code?"""
        frame = self._recorded_from(frame)
        if self._library is not None and frame is not None and id(frame) != self._library[1]:
            self._recorder.calls_back.add(self._library[0])

    def state_anew(self, frame: FrameType | None) -> None:
        """Record from here on, whatever was known of this thread."""
        recorder = self._recorder
        self.busy = True
        self.off = False
        self._token += 1
        self.settle(frame)
        self.own.records.extend((time.time_ns(), CLEAR))
        self._forget_modules()
        if not self.displaced:
            self.push_running(frame)
            if self.budget.credit_ns < 0:
                self._look_soon()
        self.busy = False
        if not self.displaced:
            recorder.trace(self.enter)

    def push_running(self, frame: FrameType | None) -> None:
        """State the recorded frames and modules that are running, and trace them from here on."""
        recorder = self._recorder
        chain, modules = [], []
        while frame is not None and frame.f_code is not recorder.base_code:
            if frame.f_code is recorder.module_call:
                modules.append(frame)
            elif recorder.is_recorded(frame):
                chain.append(frame)
            else:
                forget_end(frame)
            frame = frame.f_back
        for running in reversed(chain):
            self._push(running)
            forget_end(running)
            running.f_trace = self.local_of(running.f_code)
            running.f_trace_lines = True
        if recorder.module_key is not None:
            for running in reversed(modules):
                running.f_trace = self._enter_module(running)

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
        records = self.own.records
        if at < len(records) and records[at] == LOST:
            records[at] = LOST - common
