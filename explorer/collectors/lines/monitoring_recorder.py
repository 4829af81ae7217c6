"""Line recorder for Python 3.12 and later: sys.monitoring, which library code does not pay for.

START, RESUME, THROW and UNWIND are global events, switched off per code object for code that is not recorded; LINE,
RETURN and YIELD are local events of recorded code objects. Tools of other kinds (debugger, coverage) are left alone.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

from explorer.collectors.lines.budget import CALL_NS, RECORD_NS, Budget, Credit
from explorer.collectors.lines.records import CLEAR, COARSE, LIKELY, LOST, POP, ThreadRecords
from explorer.collectors.lines.user_code import SKIP, UserCode, being_imported

LINE_BUDGET = 20_000
"""Line events of one code object per window before its lines are given up."""

CALLS = 500
SLICE = 1_000
"""Calls, and lines of one code object, between two looks at what recording has taken."""

TOOL_NAME = "neuron_profile"

_ALL, _INNERMOST = 1, 2
"""What a pin stated: every frame of a thread, or the line of the innermost one."""


def free_tool_id() -> int | None:
    """A tool id that nobody uses: 3 and 4 have no meaning of their own, the profiler's 2 is next."""
    monitoring: Any = sys.monitoring  # type: ignore[attr-defined,unused-ignore]
    for tool in (3, 4, 2):
        if monitoring.get_tool(tool) is None:
            return tool
    return None


class MonitoringRecorder:
    """Records every thread of the interpreter."""

    method = "sys.monitoring"

    def __init__(
        self,
        user_code: UserCode,
        line_budget: int = LINE_BUDGET,
        module_call: CodeType | None = None,
        module_key: Callable[[Any, bool], int] | None = None,
    ) -> None:
        self.user_code = user_code
        self.line_budget = line_budget
        self.base_code: CodeType | None = None
        """Frames of this code and below it are another program's (what a worker was forked from)."""
        self.hot: dict[CodeType, int] = {}
        self.switched_off = 0
        self.on_switched_off: Callable[[], None] | None = None
        self.displaced = 0
        # All threads together: what is switched off is switched off for all of them.
        self._budget = Budget(Credit(), CALL_NS, RECORD_NS, time.process_time_ns)
        self._mark = 0
        self._module_call = module_call
        self._module_key = module_key
        self._tool: int | None = None
        self._threads: list[ThreadRecords] = []
        self._by_ident: dict[int, ThreadRecords] = {}
        self._own = _own_records(self)
        self._module_depth: dict[int, int] = {}
        self._codes: dict[int, CodeType] = {}
        self._kinds: dict[str, bool] = {}
        self._left: dict[int, int] = {}
        self._lines_at: dict[tuple[int, int], int] = {}
        self._on = False
        self._callbacks: dict[int, Callable[..., Any]] = {}

    @property
    def costs(self) -> tuple[float, float]:
        """Nanoseconds of a traced call and of a record"""
        return self._budget.call_ns, self._budget.record_ns

    @costs.setter
    def costs(self, costs: tuple[float, float]) -> None:
        self._budget.call_ns, self._budget.record_ns = costs

    # -- set-up

    def start(self, frame: FrameType | None) -> None:
        monitoring: Any = sys.monitoring  # type: ignore[attr-defined,unused-ignore]
        tool = free_tool_id()
        if tool is None:
            raise RuntimeError("every tool id of sys.monitoring is taken")
        self._tool = tool
        monitoring.use_tool_id(tool, TOOL_NAME)
        monitoring.restart_events()
        self._make_callbacks()
        for event, callback in self._callbacks.items():
            monitoring.register_callback(tool, event, callback)
        self._switch_on(frame)

    def _switch_on(self, frame: FrameType | None) -> None:
        monitoring: Any = sys.monitoring  # type: ignore[attr-defined,unused-ignore]
        events = monitoring.events
        own = threading.get_ident()
        for ident, top in sys._current_frames().items():
            self._state_chain(ident, frame if ident == own else top)
        for code in self._codes.values():
            monitoring.set_local_events(self._tool, code, self._local_events)
        if self._module_call is not None:
            monitoring.set_local_events(self._tool, self._module_call, events.PY_RETURN)
        monitoring.restart_events()
        monitoring.set_events(
            self._tool, events.PY_START | events.PY_RESUME | events.PY_THROW | events.PY_UNWIND
        )
        self._on = True

    def _switch_off(self) -> None:
        monitoring: Any = sys.monitoring  # type: ignore[attr-defined,unused-ignore]
        self._on = False
        monitoring.set_events(self._tool, 0)
        for code in self._codes.values():
            monitoring.set_local_events(self._tool, code, 0)
        if self._module_call is not None:
            monitoring.set_local_events(self._tool, self._module_call, 0)

    def _state_chain(self, ident: int, frame: FrameType | None) -> None:
        """Say anew which recorded frames of a thread are running, outermost first."""
        chain = []
        modules = []
        while frame is not None and frame.f_code is not self.base_code:
            if self._recorded(frame.f_code, frame):
                chain.append(frame)
            elif frame.f_code is self._module_call:
                modules.append(frame)
            frame = frame.f_back
        if not chain and ident not in self._by_ident:
            return
        own = self.thread_records(ident)
        if own is None:
            return
        now = time.time_ns()
        own.records.extend((now, CLEAR))
        for running in reversed(chain):
            self._codes.setdefault(id(running.f_code), running.f_code)
            own.records.extend((now, running.f_code, now, running.f_lineno or running.f_code.co_firstlineno))
        own.modules.extend((now, CLEAR))
        self._module_depth[own.native_id] = 0
        for running in reversed(modules):
            self._enter_module(running, own)

    def _lose(self, own: ThreadRecords) -> None:
        """Nothing is known of a thread from here on."""
        now = time.time_ns()
        own.records.extend((now, LOST))
        own.modules.extend((now, CLEAR))
        self._module_depth[own.native_id] = 0

    def thread_records(self, ident: int) -> ThreadRecords | None:
        """The records of a live thread; made anew where the interpreter gave its number to another thread."""
        own = threading.get_ident()
        native_id = threading.get_native_id() if ident == own else None
        name = f"thread {ident}"
        for thread in threading.enumerate():
            if thread.ident == ident:
                native_id, name = thread.native_id, thread.name
        if native_id is None:
            return None
        known = self._by_ident.get(ident)
        if known is None or known.native_id != native_id:
            known = self._by_ident[ident] = ThreadRecords(native_id, ident, name)
            self._threads.append(known)
        return known

    def _recorded(self, code: CodeType, frame: FrameType | None) -> bool:
        file = code.co_filename
        known = self._kinds.get(file)
        if known is None:
            if frame is None:
                return False
            known = self.user_code.kind_of_frame(frame) != SKIP
            if not known and being_imported(frame.f_globals):
                # A library shows whether it uses torch once its own imports have run.
                return False
            if not file.startswith("<") or file.startswith("<frozen "):
                self._kinds[file] = known
        return known

    def _enter_module(self, frame: FrameType, own: ThreadRecords) -> None:
        if self._module_key is None:
            return
        depth = self._module_depth.get(own.native_id, 0)
        key = self._module_key(frame.f_locals.get("self"), depth == 0)
        self._module_depth[own.native_id] = depth + 1
        own.modules.extend((time.time_ns(), key))

    def _leave_module(self, own: ThreadRecords) -> None:
        depth = self._module_depth.get(own.native_id, 0)
        if depth:
            self._module_depth[own.native_id] = depth - 1
            own.modules.extend((time.time_ns(), 0))

    # -- the callbacks

    def _make_callbacks(self) -> None:
        monitoring: Any = sys.monitoring  # type: ignore[attr-defined,unused-ignore]
        events = monitoring.events
        disable = monitoring.DISABLE
        tool = self._tool
        own = self._own
        clock = time.time_ns
        getframe = sys._getframe
        codes = self._codes
        left = self._left
        budget = self.line_budget
        lines_at = self._lines_at
        module_call = self._module_call
        self._local_events = local = events.LINE | events.PY_RETURN | events.PY_YIELD
        calls = CALLS

        def known(code: CodeType) -> bool:
            if id(code) in codes:
                return True
            if not self._recorded(code, getframe(2)):
                return False
            codes[id(code)] = code
            monitoring.set_local_events(tool, code, local)
            return True

        def look() -> None:
            if self._on and not self._may_go_on():
                self.switched_off += 1
                for thread in self._threads:
                    self._lose(thread)
                self._switch_off()
                if self.on_switched_off is not None:
                    self.on_switched_off()

        def start(code: CodeType, offset: int) -> Any:
            nonlocal calls
            if not known(code):
                if code is module_call:
                    self._enter_module(getframe(1), own.thread)
                    return None
                return disable
            append = own.append
            append(clock())
            append(code)
            calls -= 1
            if calls < 0:
                calls = CALLS
                look()
            return None

        def resume(code: CodeType, offset: int) -> Any:
            if not known(code):
                return disable
            line = lines_at.get((id(code), offset))
            if line is None:
                line = next(
                    (at for low, high, at in code.co_lines() if low <= offset < high and at),
                    code.co_firstlineno,
                )
                lines_at[(id(code), offset)] = line
            now = clock()
            append = own.append
            append(now)
            append(code)
            append(now)
            append(line)
            return None

        def throw(code: CodeType, offset: int, error: BaseException) -> Any:
            resume(code, offset)
            return None

        def unwind(code: CodeType, offset: int, error: BaseException) -> Any:
            if id(code) in codes:
                append = own.append
                append(clock())
                append(POP)
            elif code is module_call:
                self._leave_module(own.thread)
            return None

        def leave(code: CodeType, offset: int, value: Any) -> Any:
            if code is module_call:
                self._leave_module(own.thread)
                return None
            append = own.append
            append(clock())
            append(POP)
            return None

        def line(code: CodeType, number: int) -> Any:
            append = own.append
            append(clock())
            append(number)
            count = left.get(id(code), budget) - 1
            left[id(code)] = count
            if count < 0:
                if count == -1:
                    self.hot[code] = self.hot.get(code, 0) + 1
                append(clock())
                append(COARSE)
                return disable
            if count % SLICE == 0:
                look()
            return None

        self._line = line
        self._callbacks = {
            events.PY_START: start,
            events.PY_RESUME: resume,
            events.PY_THROW: throw,
            events.PY_UNWIND: unwind,
            events.PY_RETURN: leave,
            events.PY_YIELD: leave,
            events.LINE: line,
        }

    def _may_go_on(self) -> bool:
        """Whether recording has taken no more of the process's time than it may, all threads together."""
        made = sum(len(thread.records) for thread in self._threads) // 2
        # `take` empties the lists meanwhile.
        new, self._mark = made - self._mark if made >= self._mark else made, made
        return self._budget.charge(records=new)

    # -- windows

    def pin(self, frame: FrameType | None, likely: bool = False) -> int | None:
        """As of `LineRecorder`."""
        if self._tool is None:
            return None
        ident = threading.get_ident()
        on = self._on
        if not on:
            self._state_chain(ident, frame)
        own = self._by_ident.get(ident)
        while frame is not None and id(frame.f_code) not in self._codes:
            frame = frame.f_back if frame.f_code is not self.base_code else None
        if own is None or frame is None or (on and self._left.get(id(frame.f_code), 0) >= 0):
            return None
        own.records.extend((time.time_ns(), LIKELY - frame.f_lineno if likely else frame.f_lineno))
        return _INNERMOST if on else _ALL

    def unpin(self, frame: FrameType | None, token: int) -> None:
        """As of `LineRecorder`."""
        own = self._by_ident.get(threading.get_ident())
        if self._tool is None or own is None:
            return
        if token == _ALL and not self._on:
            self._lose(own)
        elif token == _INNERMOST and self._on:
            own.records.extend((time.time_ns(), COARSE))

    def tick(self, frame: FrameType) -> None:
        """Library code costs nothing here, whatever it does."""

    def pause(self) -> None:
        if self._tool is not None:
            self._switch_off()

    def resume(self, frame: FrameType | None) -> None:
        self._left.clear()
        self._switch_on(frame)

    def take_up(self, frame: FrameType | None, at_step: bool = False) -> bool:
        """Record again where that had been switched off, unless it has to rest longer."""
        if self._tool is not None and not self._on:
            if not self._may_go_on():
                return False
            self._switch_on(frame)
        return True

    def take(self) -> list[ThreadRecords]:
        alive = {thread.native_id for thread in threading.enumerate()}
        result = []
        for own in list(self._threads):
            count, module_count = len(own.records) & ~1, len(own.modules) & ~1
            taken, modules = own.records[:count], own.modules[:module_count]
            del own.records[:count]
            del own.modules[:module_count]
            # A C++ thread that calls Python (autograd) is not in threading's list, but the system knows it.
            finished = own.native_id not in alive and not os.path.exists(f"/proc/self/task/{own.native_id}")
            result.append(ThreadRecords(own.native_id, own.ident, own.name, taken, finished, modules))
            if finished and not own.records:
                self._threads.remove(own)
                self._module_depth.pop(own.native_id, None)
                if self._by_ident.get(own.ident) is own:
                    del self._by_ident[own.ident]
        return result

    def at_next_line(self, frame: FrameType | None, action: Callable[[], None]) -> bool:
        monitoring: Any = sys.monitoring  # type: ignore[attr-defined,unused-ignore]
        codes = set()
        while frame is not None:
            if id(frame.f_code) in self._codes:
                codes.add(id(frame.f_code))
            frame = frame.f_back
        if not codes or not self._on:
            return False
        wanted = threading.get_ident()
        regular, tool, event = self._line, self._tool, monitoring.events.LINE

        def once(code: CodeType, number: int) -> Any:
            result = regular(code, number)
            if threading.get_ident() == wanted and id(code) in codes:
                monitoring.register_callback(tool, event, regular)
                action()
            return result

        monitoring.register_callback(tool, event, once)
        return True

    def stop(self) -> None:
        if self._tool is None:
            return
        monitoring: Any = sys.monitoring  # type: ignore[attr-defined,unused-ignore]
        self._switch_off()
        for event in self._callbacks:
            monitoring.register_callback(self._tool, event, None)
        monitoring.free_tool_id(self._tool)
        self._tool = None


def _own_records(recorder: MonitoringRecorder) -> Any:
    """Each thread's own records, found without asking which thread it is."""

    class Own(threading.local):
        def __init__(self) -> None:
            thread = recorder.thread_records(threading.get_ident())
            assert thread is not None
            self.thread = thread
            self.append = thread.records.append

    return Own()
