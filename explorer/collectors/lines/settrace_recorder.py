"""Line recorder for Python 3.11: sys.settrace, with the shortest possible path for code that is not the user's.

Cost: one call of a trace function per Python function call of any library, one `(time, line)` pair per line of user code.
Line numbers come from LINE events and frame ends from RETURN events: without the latter an operator after a call on the
same line would be charged to the callee.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

from explorer.collectors.lines.budget import CALL_NS, RECORD_NS, Credit
from explorer.collectors.lines.records import ThreadRecords
from explorer.collectors.lines.settrace_thread import TracedThread
from explorer.collectors.lines.user_code import SKIP, UserCode, being_imported

LINE_BUDGET = 20_000
"""Line events of one code object per window before its lines are given up, where they follow fast."""

STEP_BUDGET = 2_000
"""Line events that hot code gets again at the end of a step."""

TRY_BUDGET = 50
"""Line events that hot code gets when recording is taken up otherwise: enough to see that it is still running."""

NAMELESS = 10_000
"""Code objects without a file of their own that are remembered: a program may make new ones for ever."""

MUTED = -1
"""What `pin` returns where it switched tracing off for a call."""

MODULES = object()
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
        self.module_call = module_call
        self.module_key = module_key
        self.modules_file = MODULES
        self.line_budget = line_budget
        self.costs: tuple[float, float] = (CALL_NS, RECORD_NS)
        """Nanoseconds of a traced call and of a record"""
        self.base_code: CodeType | None = None
        """Frames of this code and below it are another program's (what a worker was forked from)."""
        self.hot: dict[CodeType, int] = {}
        self.hot_now: set[CodeType] = set()
        self.calls_back: set[CodeType] = {module_call} if module_call is not None else set()
        """Library code that is known to call the program's."""
        self.switched_off = 0
        self.on_switched_off: Callable[[], None] | None = None
        self.displaced = 0
        self.stopped = False
        self.files: dict[str, Any] = {}
        if module_call is not None and module_key is not None:
            self.files[module_call.co_filename] = MODULES
        self._nameless: dict[int, tuple[CodeType, int]] = {}
        """Code without a file of its own, by identity, and whose it is"""
        self._real_settrace = sys.settrace
        # One object, so that `stop` knows its own.
        self._watched_settrace = self._settrace
        self._threads: list[TracedThread] = []
        self._by_ident: dict[int, TracedThread] = {}
        self._previous: Any = None
        self._previous_threading: Any = None
        self._owner = 0
        self._credit, self._others_credit = Credit(), Credit(is_owners=False)

    # -- set-up

    def start(self, frame: FrameType | None) -> None:
        self._previous = sys.gettrace()
        self._previous_threading = threading.gettrace()
        self._owner = threading.get_ident()
        thread = self._make_thread()
        thread.push_running(frame)
        threading.settrace(self._bootstrap)
        self._real_settrace(thread.enter)
        sys.settrace = self._watched_settrace

    def _settrace(self, function: Any) -> None:
        """What a debugger or coverage calls to take over on this thread, or to let go: theirs comes first, and recording
        knows that it sees nothing meanwhile."""
        if function == self._bootstrap:
            # threading hands our own hook to a new thread, whose identity may have been another's before.
            self._real_settrace(function)
            return
        thread = self._own_thread() if not self.stopped else None
        ours = function is None or (thread is not None and function is thread.enter)
        if thread is not None and not ours:
            self.displaced += 1
            thread.displaced = True
            thread.rest.end_anywhere(None)
        # Last, so that a debugger that stops at the next call stops in the program.
        self._real_settrace(function)
        if thread is not None and ours:
            thread.displaced = False
            thread.rest.end_anywhere(sys._getframe(1))

    def _bootstrap(self, frame: FrameType, event: str, arg: Any) -> Any:
        """First call in a new thread: give it its own trace functions, then behave as they do."""
        if self.stopped:
            self._real_settrace(None)
            return None
        thread = self._make_thread()
        if thread.rest_at_once(frame):
            return None
        self._real_settrace(thread.enter)
        return thread.enter(frame, event, arg)

    def _make_thread(self) -> TracedThread:
        thread = threading.current_thread()
        own = ThreadRecords(threading.get_native_id(), threading.get_ident(), thread.name)
        traced = self._by_ident[own.ident] = TracedThread(
            self, own, self._credit if own.ident == self._owner else self._others_credit
        )
        self._threads.append(traced)
        return traced

    def _own_thread(self) -> TracedThread | None:
        return self._by_ident.get(threading.get_ident())

    # -- what threads ask

    def classify(self, frame: FrameType) -> int:
        """Whose code a frame runs, where its file is not in `files`; puts it there."""
        code = frame.f_code
        known = self._nameless.get(id(code))
        if known is not None and known[0] is code:
            return known[1]
        file = code.co_filename
        kind = self.user_code.kind_of_frame(frame)
        if kind == SKIP and being_imported(frame.f_globals):
            # A library shows whether it uses torch once its own imports have run.
            return kind
        if not file.startswith("<") or file.startswith("<frozen "):
            self.files[file] = None if kind == SKIP else True
        else:
            # Names such as <string> are shared by the user's exec and by generated library code.
            if len(self._nameless) >= NAMELESS:
                self._nameless.clear()
            self._nameless[id(code)] = (code, kind)
        return kind

    def is_recorded(self, frame: FrameType) -> bool:
        """Whether lines of this frame are recorded."""
        file = frame.f_code.co_filename
        if file in self.files:
            return self.files[file] is not None and self.files[file] is not MODULES
        return self.classify(frame) != SKIP

    def recorded_from(self, frame: FrameType | None) -> FrameType | None:
        """The innermost recorded frame from this one outwards."""
        while frame is not None and frame.f_code is not self.base_code:
            if self.is_recorded(frame):
                return frame
            frame = frame.f_back
        return None

    def is_torch(self, frame: FrameType) -> bool:
        """Whether a frame runs torch's own code, whose time is its ops' rather than its Python's."""
        return str(frame.f_globals.get("__name__", "")).startswith("torch.")

    def chain(self, frame: FrameType | None) -> list[tuple[int, CodeType]]:
        """Recorded frames from the outermost to this one, by identity: holding them would keep their variables alive."""
        chain = []
        while frame is not None and frame.f_code is not self.base_code:
            if frame.f_code is not self.module_call and self.is_recorded(frame):
                chain.append((id(frame), frame.f_code))
            frame = frame.f_back
        return chain[::-1]

    def trace(self, enter: Callable[..., Any]) -> None:
        """Trace this thread."""
        self._real_settrace(enter)

    def stop_tracing(self) -> None:
        """Trace this thread no longer."""
        self._real_settrace(None)

    def rests(self, thread: TracedThread) -> None:
        """Recording of a thread was switched off."""
        self.switched_off += 1
        if self.on_switched_off is not None and thread.own.ident == self._owner:
            self.on_switched_off()

    # -- windows

    def pause(self) -> None:
        thread = self._own_thread()
        if thread is not None and not thread.displaced:
            thread.paused = True
            self._real_settrace(None)

    def resume(self, frame: FrameType | None) -> None:
        """Re-arm this thread: budgets are full again and the running chain is stated anew."""
        for thread in self._threads:
            thread.rearm(self.line_budget)
        self.hot_now.clear()
        own = self._own_thread()
        if own is not None:
            own.paused = False
            own.rest.end_anywhere(frame)

    def take(self) -> list[ThreadRecords]:
        alive = {thread.ident for thread in threading.enumerate()}
        current = sys._current_frames()
        result = []
        kept = []
        for thread in self._threads:
            own = thread.own
            thread.rest.settle(current.get(own.ident))
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
            if not finished or own.records:
                kept.append(thread)
        self._threads = kept
        return result

    def take_up(self, frame: FrameType | None, at_step: bool = False) -> bool:
        """On a thread whose recording was switched off: record again, unless it has to rest longer. At a step's end hot code
        gets a good number of lines again, else a few. Returns whether the thread is being recorded."""
        own = self._own_thread()
        if own is None or own.paused:
            return True
        if own.rest.busy:
            return False
        if at_step and self.hot_now and own.may_go_on():
            for thread in self._threads:
                thread.rearm(STEP_BUDGET, self.hot_now)
            self.hot_now.clear()
        if not own.rest.off:
            return True
        if not own.may_go_on():
            return False
        own.rest.learn(frame)
        if not at_step:
            innermost = self.recorded_from(frame)
            if innermost is not None and innermost.f_code in self.hot_now:
                self.hot_now.discard(innermost.f_code)
                own.rearm(TRY_BUDGET, {innermost.f_code})
        own.rest.end_anywhere(frame)
        return True

    def pin(self, frame: FrameType | None, likely: bool = False) -> int | None:
        """As of `LineRecorder`. Where recording does not rest, the call is spared being traced."""
        own = self._own_thread()
        if own is None or own.paused or own.displaced or self.stopped:
            return None
        if likely or own.rest.off or sys.gettrace() is not own.enter:
            return own.rest.pin(frame, likely)
        self._real_settrace(None)
        return MUTED

    def unpin(self, frame: FrameType | None, token: int) -> None:
        """As of `LineRecorder`."""
        own = self._own_thread()
        if own is None or own.paused or own.displaced or self.stopped:
            return
        if token != MUTED:
            own.rest.unpin(frame, token)
        elif not own.rest.off:
            # No frame of the program came or went in between.
            self._real_settrace(own.enter)

    def tick(self, frame: FrameType) -> None:
        """This thread runs Python code, in this frame, and has done so for a while: does that cost too much?"""
        own = self._own_thread()
        if own is not None and not self.stopped:
            own.tick(frame)

    def at_next_line(self, frame: FrameType | None, action: Callable[[], None]) -> bool:
        own = self._own_thread()
        if own is None or sys.gettrace() is not own.enter:
            return False

        def arm(running: FrameType | None) -> bool:
            while running is not None and not (running.f_trace is not None and self.is_recorded(running)):
                running = running.f_back
            if running is None:
                return False
            running.f_trace = once
            running.f_trace_lines = True
            return True

        def once(running: FrameType, event: str, arg: Any) -> Any:
            regular = own.local_of(running.f_code)
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
        self.stopped = True
        if sys.settrace == self._watched_settrace:
            sys.settrace = self._real_settrace
        thread = self._own_thread()
        if threading.get_ident() == self._owner and thread is not None and not thread.displaced:
            self._real_settrace(self._previous)
        elif thread is not None and sys.gettrace() is thread.enter:
            self._real_settrace(None)
        if threading.gettrace() == self._bootstrap:
            threading.settrace(self._previous_threading)  # type: ignore[arg-type]
