"""Line recorder for Python 3.11: sys.settrace, with the shortest possible path for code that is not the user's.

Cost: one call of `enter` per Python function call of any library, one `(time, line)` pair per line of user code.
Line numbers come from LINE events and frame ends from RETURN events: without the latter an operator after a call on the
same line would be charged to the callee.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

from explorer.collectors.lines.records import CLEAR, LOST, POP, SKIPPED_CHUNK, ThreadRecords
from explorer.collectors.lines.user_code import SKIP, UserCode, being_imported

LINE_BUDGET = 20_000
"""Line events of one code object per window before its lines are given up."""

STEP_BUDGET = 2_000
"""Line events that hot code gets again at the end of a step."""

CALL_CHUNK = 5_000
"""Python calls between two looks at the clock."""

CALL_NS = 350
RECORD_NS = 250
"""Rough cost of one traced call and of one record; when they make up more than a third of the wall time of a chunk of
calls (a slow-down of 1.5), tracing of the thread is switched off until the next step."""


_MODULES = object()
"""Marks the file of nn.Module.__call__."""


class SettraceRecorder:
    """Records the calling thread and every Python thread started later. Threads that ran before are out of reach."""

    method = "sys.settrace"

    def __init__(
        self,
        user_code: UserCode,
        line_budget: int = LINE_BUDGET,
        module_call: CodeType | None = None,
        module_key: Callable[[Any, bool], int] | None = None,
    ) -> None:
        """`module_call` is the code of nn.Module.__call__, `module_key` turns a module into its key (and is told
        whether it is the outermost call); both None records no modules."""
        self.user_code = user_code
        self._module_call = module_call
        self._module_key = module_key
        self.line_budget = line_budget
        self.base_code: CodeType | None = None
        """Frames of this code and below it are another program's (what a worker was forked from)."""
        self.hot: dict[CodeType, int] = {}
        self.hot_now: set[CodeType] = set()
        self.switched_off = 0
        self.off_by_calls = False
        """Whether calls too many to trace switched recording off last, or one code object's lines"""
        self.on_switched_off: Callable[[], None] | None = None
        self.displaced = 0
        self._displaced: set[int] = set()
        self._real_settrace = sys.settrace
        # One object, so that `stop` knows its own.
        self._watched_settrace = self._settrace
        self._threads: list[ThreadRecords] = []
        self._enter: dict[int, Callable[..., Any]] = {}
        self._files: dict[str, Any] = {}
        if module_call is not None and module_key is not None:
            self._files[module_call.co_filename] = _MODULES
        self._locals: list[dict[int, tuple[CodeType, Callable[..., Any]]]] = []
        self._pushers: dict[int, tuple[Any, ...]] = {}
        self._off: set[int] = set()
        self._lost: dict[int, tuple[ThreadRecords, int, list[tuple[int, CodeType]]]] = {}
        self._previous: Any = None
        self._previous_threading: Any = None
        self._owner = 0
        self._stopped = False

    # -- set-up

    def start(self, frame: FrameType | None) -> None:
        self._previous = sys.gettrace()
        self._previous_threading = threading.gettrace()
        self._owner = threading.get_ident()
        enter = self._make_thread()
        self._push_running(frame)
        threading.settrace(self._bootstrap)
        self._real_settrace(enter)
        sys.settrace = self._watched_settrace

    def _settrace(self, function: Any) -> None:
        """What a debugger or coverage calls to take over on this thread, or to let go: theirs comes first, and recording
        knows that it sees nothing meanwhile."""
        if function == self._bootstrap:
            # threading hands our own hook to a new thread, whose identity may have been another's before.
            self._real_settrace(function)
            return
        ident = threading.get_ident()
        known = not self._stopped and ident in self._pushers
        ours = function is None or function is self._enter.get(ident)
        if known and not ours:
            self.displaced += 1
            self._displaced.add(ident)
            self._state_anew(None)
        # Last, so that a debugger that stops at the next call stops in the program.
        self._real_settrace(function)
        if known and ours:
            self._displaced.discard(ident)
            self._state_anew(sys._getframe(1))

    def _bootstrap(self, frame: FrameType, event: str, arg: Any) -> Any:
        """First call in a new thread: give it its own closures, then behave as they do."""
        if self._stopped:
            self._real_settrace(None)
            return None
        enter = self._make_thread()
        self._real_settrace(enter)
        return enter(frame, event, arg)

    def _make_thread(self) -> Callable[..., Any]:
        thread = threading.current_thread()
        own = ThreadRecords(threading.get_native_id(), threading.get_ident(), thread.name)
        self._threads.append(own)
        append = own.records.append
        clock = time.time_ns
        files = self._files
        locals_of: dict[int, tuple[CodeType, Callable[..., Any]]] = {}
        found = locals_of.get
        ident = own.ident
        self._off.discard(ident)
        self._displaced.discard(ident)

        def make_local(code: CodeType) -> Callable[..., Any]:
            left = self.line_budget
            hot = False

            def local(frame: FrameType, event: str, arg: Any) -> Any:
                nonlocal left, hot
                if event == "line":
                    append(clock())
                    append(frame.f_lineno)
                    left -= 1
                    if left < 0:
                        if not hot:
                            hot = True
                            self.hot[code] = self.hot.get(code, 0) + 1
                            self.hot_now.add(code)
                        frame.f_trace_lines = False
                        # With tracing on, even untraced lines cost: each instruction takes the slow path.
                        self.off_by_calls = False
                        switch_off(frame)
                elif event == "return":
                    append(clock())
                    append(POP)
                elif event == "rearm":
                    left, hot = arg, False
                return local

            locals_of[id(code)] = (code, local)
            return local

        def local_of(code: CodeType) -> Callable[..., Any]:
            entry = found(id(code))
            return entry[1] if entry is not None else make_local(code)

        modules_file = _MODULES
        module_call = self._module_call
        module_key = self._module_key
        append_module = own.modules.append
        depth = 0

        def in_module(frame: FrameType, event: str, arg: Any) -> Any:
            nonlocal depth
            if event == "return" and depth:
                depth -= 1
                append_module(clock())
                append_module(0)
            return in_module

        def enter_module(frame: FrameType) -> Any:
            nonlocal depth
            assert module_key is not None
            key = module_key(frame.f_locals.get("self"), depth == 0)
            depth += 1
            append_module(clock())
            append_module(key)
            frame.f_trace_lines = False
            return in_module

        def forget_modules() -> None:
            nonlocal depth
            depth = 0
            append_module(clock())
            append_module(CLEAR)

        def switch_off(frame: FrameType | None) -> None:
            self._lost[ident] = (own, len(records) + 1, self._chain(frame))
            append(clock())
            append(LOST)
            forget_modules()
            self._off.add(ident)
            self.switched_off += 1
            self._real_settrace(None)
            if self.on_switched_off is not None:
                self.on_switched_off()

        calls = CALL_CHUNK
        skipped = 0
        append_skipped = own.skipped.append
        chunk_start = clock()
        records = own.records
        mark = 0

        def enter(frame: FrameType, event: str, arg: Any) -> Any:
            nonlocal calls, skipped, chunk_start, mark
            code = frame.f_code
            calls -= 1
            if calls < 0:
                now = clock()
                calls = CALL_CHUNK
                busy, chunk_start = now - chunk_start, now
                made, mark = len(records) - mark, len(records)
                if 3 * (CALL_CHUNK * CALL_NS + max(made, 0) // 2 * RECORD_NS) > busy:
                    self.off_by_calls = True
                    switch_off(frame.f_back)
                    return None
            try:
                entries = files[code.co_filename]
            except KeyError:
                entries = None if self._classify(frame) == SKIP else True
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

        def push(frame: FrameType) -> None:
            now = clock()
            append(now)
            append(frame.f_code)
            append(now)
            append(frame.f_lineno)

        self._enter[ident] = enter
        self._locals.append(locals_of)
        self._pushers[ident] = (local_of, push, append, enter_module, forget_modules)
        return enter

    def _classify(self, frame: FrameType) -> int:
        file = frame.f_code.co_filename
        kind = self.user_code.kind_of_frame(frame)
        if kind == SKIP and being_imported(frame.f_globals):
            # A library shows whether it uses torch once its own imports have run.
            return kind
        if not file.startswith("<") or file.startswith("<frozen "):
            # Names such as <string> are shared by the user's exec and by generated library code: asked every time.
            self._files[file] = None if kind == SKIP else True
        return kind

    def _push_running(self, frame: FrameType | None) -> None:
        """State the recorded frames and modules of this thread that are running, and trace them from here on."""
        local_of, push, _, enter_module, _ = self._pushers[threading.get_ident()]
        chain, modules = [], []
        while frame is not None and frame.f_code is not self.base_code:
            if frame.f_code is self._module_call:
                modules.append(frame)
            elif self._recorded(frame):
                chain.append(frame)
            frame = frame.f_back
        for running in reversed(chain):
            push(running)
            running.f_trace = local_of(running.f_code)
            running.f_trace_lines = True
        if self._module_key is not None:
            for running in reversed(modules):
                running.f_trace = enter_module(running)

    def _recorded(self, frame: FrameType) -> bool:
        file = frame.f_code.co_filename
        if file in self._files:
            return self._files[file] is not None and self._files[file] is not _MODULES
        return self._classify(frame) != SKIP

    # -- windows

    def mute(self) -> bool:
        """No user code is about to run on this thread: spare its library calls the tracing. True where that was done."""
        if self._enter.get(threading.get_ident()) is not sys.gettrace() or self._stopped:
            return False
        self._real_settrace(None)
        return True

    def unmute(self) -> None:
        """End of `mute`; no frame came or went in between."""
        ident = threading.get_ident()
        if ident not in self._displaced:
            self._real_settrace(self._enter[ident])

    def pause(self) -> None:
        if threading.get_ident() not in self._displaced:
            self._real_settrace(None)

    def resume(self, frame: FrameType | None) -> None:
        """Re-arm this thread: budgets are full again and the running chain is stated anew."""
        for locals_of in self._locals:
            for _, local in list(locals_of.values()):
                local(None, "rearm", self.line_budget)
        self.hot_now.clear()
        self._state_anew(frame)

    def _state_anew(self, frame: FrameType | None) -> None:
        ident = threading.get_ident()
        enter = self._enter.get(ident)
        if enter is None:
            return
        self._off.discard(ident)
        self._settle(ident, frame)
        _, _, append, _, forget_modules = self._pushers[ident]
        append(time.time_ns())
        append(CLEAR)
        forget_modules()
        if ident not in self._displaced:
            self._push_running(frame)
            self._real_settrace(enter)

    def take(self) -> list[ThreadRecords]:
        alive = {thread.ident for thread in threading.enumerate()}
        current = sys._current_frames()
        for ident in list(self._lost):
            self._settle(ident, current.get(ident))
        result = []
        for own in self._threads:
            count = len(own.records) & ~1
            taken = own.records[:count]
            del own.records[:count]
            module_count = len(own.modules) & ~1
            modules = own.modules[:module_count]
            del own.modules[:module_count]
            skipped = own.skipped[:]
            del own.skipped[: len(skipped)]
            finished = own.ident not in alive
            result.append(
                ThreadRecords(own.native_id, own.ident, own.name, taken, finished, modules, skipped)
            )
        self._threads = [t for t, r in zip(self._threads, result) if not r.finished or t.records]
        return result

    def _chain(self, frame: FrameType | None) -> list[tuple[int, CodeType]]:
        """Recorded frames from the outermost to this one, by identity: holding them would keep their variables alive."""
        chain = []
        while frame is not None and frame.f_code is not self.base_code:
            if frame.f_code is not self._module_call and self._recorded(frame):
                chain.append((id(frame), frame.f_code))
            frame = frame.f_back
        return chain[::-1]

    def _settle(self, ident: int, frame: FrameType | None) -> None:
        """What was surely running while a thread was not recorded: the frames of before that are still there."""
        lost = self._lost.pop(ident, None)
        if lost is None:
            return
        own, at, before = lost
        common = 0
        for old, new in zip(before, self._chain(frame)):
            if old != new:
                break
            common += 1
        if at < len(own.records) and own.records[at] == LOST:
            own.records[at] = LOST - common

    def take_up(self, frame: FrameType | None, at_step: bool = False) -> bool:
        """On a thread whose recording a hot loop switched off: record again, unless that loop is still running. At a
        step's end hot code gets a small budget again. Returns whether the thread is being recorded."""
        if threading.get_ident() not in self._off:
            return True
        if at_step:
            for locals_of in self._locals:
                for code, local in list(locals_of.values()):
                    if code in self.hot_now:
                        local(None, "rearm", STEP_BUDGET)
            self.hot_now.clear()
        innermost = frame
        while innermost is not None and not self._recorded(innermost):
            innermost = innermost.f_back
        if innermost is not None and innermost.f_code in self.hot_now:
            return False
        self._state_anew(frame)
        return True

    def at_next_line(self, frame: FrameType | None, action: Callable[[], None]) -> bool:
        ident = threading.get_ident()
        if ident not in self._pushers or sys.gettrace() is not self._enter[ident]:
            return False
        local_of = self._pushers[ident][0]

        def arm(running: FrameType | None) -> bool:
            while running is not None and not (running.f_trace is not None and self._recorded(running)):
                running = running.f_back
            if running is None:
                return False
            running.f_trace = once
            running.f_trace_lines = True
            return True

        def once(running: FrameType, event: str, arg: Any) -> Any:
            regular = local_of(running.f_code)
            if event == "return":
                # The step call was the frame's last line: its caller's next line is the end of the step.
                regular(running, event, arg)
                arm(running.f_back)
            elif event == "line":
                running.f_trace = regular
                action()
                regular(running, event, arg)
            return regular if event != "exception" else once

        return arm(frame)

    def stop(self) -> None:
        self._stopped = True
        if sys.settrace == self._watched_settrace:
            sys.settrace = self._real_settrace
        ident = threading.get_ident()
        if ident == self._owner and ident not in self._displaced:
            self._real_settrace(self._previous)
        elif sys.gettrace() is not None and sys.gettrace() is self._enter.get(ident):
            self._real_settrace(None)
        if threading.gettrace() == self._bootstrap:
            threading.settrace(self._previous_threading)  # type: ignore[arg-type]
