"""The trace functions of one thread under sys.settrace, and when they give way because tracing costs too much."""

from __future__ import annotations

import dis
import sys
import time
from collections.abc import Callable
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any

from explorer.collectors.lines.budget import SLOW_CALL_NS, TICK_NS, Budget, Credit
from explorer.collectors.lines.frame_end import forget_end
from explorer.collectors.lines.records import CLEAR, POP, SKIPPED_CHUNK, ThreadRecords
from explorer.collectors.lines.settrace_rest import Rest

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

_OURS = __name__.partition(".")[0] + "."
_LOOPING = frozenset(dis.opmap[name] for name in ("JUMP_BACKWARD", "RESUME"))


class TracedThread:
    """Belongs to the thread that made it."""

    def __init__(self, recorder: SettraceRecorder, own: ThreadRecords, credit: Credit) -> None:
        self.own = own
        self.budget = Budget(credit, *recorder.costs)
        self.rest = Rest(recorder, self)
        self.displaced = False
        """Another tracer has it."""
        self.paused = False
        self._recorder = recorder
        self._total: dict[CodeType, int] = {}
        self._slice: dict[CodeType, tuple[int, int]] = {}
        self._mark = 0
        self._calls = CALLS
        self._depth = 0
        self._make()

    # -- the trace functions

    def _make(self) -> None:
        recorder, own, rest = self._recorder, self.own, self.rest
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
                        if rest.off:
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
                if rest.off:
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
        self.look_soon = soon

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
            self.rest.forget_short()

    def push(self, frame: FrameType) -> None:
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

    def leave_modules(self, frame: FrameType, end: FrameType) -> None:
        """The calls of modules from this frame outwards to `end`, which is not left, are not followed any more."""
        at: FrameType | None = frame
        while at is not None and at is not end:
            if at.f_code is self._recorder.module_call and at.f_trace == self._in_module and self._depth:
                self._leave_module()
            at = at.f_back

    def forget_modules(self) -> None:
        """No call of a module is known to be open."""
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
                self.push(frame)
                self.rest.begin(frame, frame)
            else:
                self.rest.in_library(frame)
        return CALLS

    def tick(self, frame: FrameType) -> None:
        """Between two bytecodes of this frame, the innermost, after a stretch in which the interpreter was not let go of: a
        library that loops without a call shows itself in no other way."""
        recorder = self._recorder
        if (
            self.rest.busy
            or self.rest.off
            or self.paused
            or self.displaced
            or sys.gettrace() is not self.enter
        ):
            return
        if str(frame.f_globals.get("__name__", "")).startswith(_OURS):
            # In the middle of a record.
            return
        if recorder.is_recorded(frame) or recorder.is_torch(frame):
            return
        # Right after a call nobody knows whether compiled code took the time.
        operation = frame.f_code.co_code[frame.f_lasti]
        if operation in _LOOPING and not self._charge(0, TICK_NS):
            self.rest.in_library(frame)

    def rest_at_once(self, frame: FrameType) -> bool:
        """In a thread that begins with this frame: rest until that ends, where recording has taken too much already."""
        if self.budget.in_debt:
            # To the end of the thread: it would begin to rest again in every frame that goes on.
            outermost = frame
            while outermost.f_back is not None and outermost.f_back.f_code is not self._recorder.base_code:
                outermost = outermost.f_back
            self.rest.begin(frame, outermost)
        return self.rest.off

    def _more_lines(self, frame: FrameType) -> int:
        """The lines that code gets which has used up what it had."""
        code = frame.f_code
        recorder = self._recorder
        may_go_on = self._charge()
        if code in recorder.hot_now:
            self.rest.begin(frame, frame)
            return 0
        given, since_ns = self._slice[code]
        now_ns = self.budget.seen_ns
        if self._total[code] >= recorder.line_budget and now_ns - since_ns < CALM_NS * given:
            recorder.hot[code] = recorder.hot.get(code, 0) + 1
            recorder.hot_now.add(code)
            self.rest.begin(frame, frame)
            return 0
        if not may_go_on:
            recorder.hot.setdefault(code, 1)
            self.rest.begin(frame, frame)
        self._slice[code] = (SLICE, now_ns)
        self._total[code] += SLICE
        return SLICE

    def may_go_on(self) -> bool:
        """Whether recording has rested long enough."""
        self._charge()
        if self.rest.off:
            self.budget.rested()
        return not self.budget.in_debt

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
            self.push(running)
            forget_end(running)
            running.f_trace = self.local_of(running.f_code)
            running.f_trace_lines = True
        if recorder.module_key is not None:
            for running in reversed(modules):
                running.f_trace = self._enter_module(running)
