"""Windows of a capture: sessions of the profiler with the line recorder, opened, cut, read and written one after another."""

from __future__ import annotations

import gc
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable
from types import FrameType
from typing import Any

from explorer.collectors.capture.device_session import OneWindow
from explorer.collectors.capture.host_event import HostEvent
from explorer.collectors.capture.kineto_window import make_profiler, read_stacks, read_window
from explorer.collectors.capture.main_thread_call import MainThreadCall
from explorer.collectors.capture.other_profilers import OtherProfilers, another_is_running
from explorer.collectors.capture.run_tables import RunTables
from explorer.collectors.capture.settings import CaptureSettings
from explorer.collectors.capture.side_recorders import SideRecorders
from explorer.collectors.capture.steps import Steps
from explorer.collectors.capture.window_plan import WindowPlan
from explorer.collectors.lines.profiler_stacks import ProfilerStacks
from explorer.collectors.lines.records import LineRecorder
from explorer.collectors.lines.replay import ThreadStates
from explorer.collectors.neuron.capture import NeuronCapture

WINDOW_SECONDS = 10.0
"""A window in which no step ends is cut by time."""


class Windows:
    """Belongs to the thread that started the capture. `recorder` and `stacks` are the source of lines, if any."""

    def __init__(
        self,
        settings: CaptureSettings,
        tables: RunTables,
        side: SideRecorders,
        steps: Steps,
        describe: Callable[[], None],
    ) -> None:
        """`describe` brings the manifest up to date before a window is published."""
        self._settings = settings
        self._tables = tables
        self._side = side
        self._steps = steps
        self._describe = describe
        self.plan: WindowPlan = WindowPlan(settings.window_events, settings.max_events, settings.schedule)
        self.activities: list[Any] = []
        self.profiler: Any = None
        self.device: NeuronCapture | None = None
        self.recorder: LineRecorder | None = None
        self.stacks: ProfilerStacks | None = None
        self.running = False
        """From the start of the capture to its end."""
        self.recording = False
        """A window is open."""
        self.number = -1
        self.start_ns = 0
        """Start of the window that is open, or was last."""
        self.rows: list[dict[str, Any]] = []
        """What the manifest says of each window."""
        self.failed: str | None = None
        self.gave_way = 0
        self._thread = threading.get_ident()
        self._shapes_now = False
        self._shapes_done = False
        self._pause_start = 0
        self._pauses: list[HostEvent] = []
        self._recorder_started = False
        self._starting = False
        self._steps_at_open = 0
        self._cut_soon = MainThreadCall(self._cut_by_time)
        self._others = OtherProfilers(lambda session: self._starting, self._give_way)

    # -- life

    def use_device(self, device: NeuronCapture) -> None:
        """Record with a device's own profiler, which has one session."""
        self.device = device
        self.plan = OneWindow(self._settings.max_events, self._settings.schedule)

    def start(self) -> None:
        self._others.start()

    def stop(self) -> None:
        if self.recorder is not None:
            self.recorder.stop()
        self._others.stop()
        self._cut_soon.stop()

    def forget(self) -> None:
        """In a forked child."""
        self.running = self.recording = False
        self._others.stop()
        self._cut_soon.forget()
        if self.recorder is not None:
            try:
                self.recorder.stop()
            except Exception:
                # The child goes on without a trace function that still works.
                sys.settrace(None)

    @property
    def open_number(self) -> int | None:
        """Number of the window that is open."""
        return self.number if self.recording else None

    # -- one window

    def open(self, frame: FrameType | None) -> None:
        """Begin a window, unless another profiler runs; `frame` is the innermost frame of the program."""
        settings = self._settings
        if another_is_running():
            return
        wanted = settings.record_shapes
        self._shapes_now = wanted is True or (wanted == "sample" and not self._shapes_done)
        self._starting = True
        try:
            self.profiler = make_profiler(
                self.activities,
                shapes=bool(self._shapes_now),
                memory=settings.profile_memory,
                all_threads=settings.threads == "all" and not settings.profile_memory,
                compat=settings.compat,
                stacks=self.stacks is not None,
                device=self.device.profiler_arguments() if self.device is not None else None,
            )
            self.profiler.start()
        except Exception as error:
            self._fail(f"torch.profiler could not start: {error}")
            return
        finally:
            self._starting = False
        self.number += 1
        self.recording = True
        if self.recorder is not None:
            self._start_recorder(self.recorder, frame)
        self._side.enable(True)
        self._steps_at_open = self._steps.recorded
        if threading.current_thread() is threading.main_thread() and self.device is None:
            self._cut_soon.after(WINDOW_SECONDS)
        self.start_ns = time.time_ns()
        if self._pause_start:
            # What the hand-over cost is an event of its own: a gap that explains itself.
            self._pauses.append(
                HostEvent(
                    threading.get_native_id(),
                    "overhead",
                    "neuron_profile: window written",
                    self._pause_start,
                    self.start_ns - self._pause_start,
                )
            )
            self._pause_start = 0

    def _start_recorder(self, recorder: LineRecorder, frame: FrameType | None) -> None:
        try:
            if self._recorder_started:
                recorder.resume(frame)
            else:
                recorder.start(frame)
                self._recorder_started = True
        except Exception as error:
            self.recorder = None
            self._fail(f"the line recorder could not start: {error}", fatal=False)

    def close(self, end_ns: int) -> None:
        """Stop recording, read, write, publish. Nothing in here may reach the program."""
        begin = time.time_ns()
        if self.recorder is not None:
            self.recorder.pause()
        self._side.enable(False)
        self.recording = False
        self._pause_start = end_ns
        collecting = gc.isenabled()
        # Bulk decoding makes hundreds of thousands of objects and no cycles.
        gc.disable()
        try:
            if self.device is not None:
                self.device.synchronize()
            self.profiler.stop()
            stopped = time.time_ns()
            events = self._write(end_ns)
        except Exception as error:
            self._fail(f"a window could not be written: {error}", detail=traceback.format_exc())
            events, stopped = 0, time.time_ns()
        finally:
            if collecting:
                gc.enable()
        self.plan.window_closed(events)
        self._shapes_done = self._shapes_done or self._shapes_now
        done = time.time_ns()
        self.rows.append(
            {
                "window": self.number,
                "start_ns": self.start_ns,
                "duration_ns": end_ns - self.start_ns,
                "events": events,
                "shapes": bool(self._shapes_now),
                "stop_ns": stopped - begin,
                "write_ns": done - stopped,
            }
        )
        if not self._settings.compat:
            self.profiler.profiler = None
        if self.plan.spent:
            self._side.loaders.dismiss()

    def _write(self, end_ns: int) -> int:
        raw = read_window(self.profiler, without_python=self.stacks is not None)
        if not len(raw) and not self._tables.has_writer:
            return 0
        if not self.running and self._steps.drop_empty_tail(self.start_ns, int(raw.starts.max(initial=0))):
            self._steps.recorded -= 1
        pauses, self._pauses = self._pauses, []
        extra = pauses + self._side.events(raw)
        events = self._tables.write_window(raw, self._thread_states(), extra, self.start_ns, end_ns)
        self._describe()
        self._tables.writer.commit()
        return events

    def _thread_states(self) -> list[ThreadStates]:
        replay = self._tables.replay
        if self.stacks is not None:
            try:
                return self.stacks.states(*read_stacks(self.profiler), replay.chains)
            except Exception as error:
                self._fail(
                    f"a window has no lines: its stacks could not be read: {error}",
                    detail=traceback.format_exc(),
                    fatal=False,
                )
                return []
        return replay.states(self.recorder.take() if self.recorder is not None else [])

    def _fail(self, message: str, *, detail: str = "", fatal: bool = True) -> None:
        print(f"neuron-explorer: {message}", file=sys.stderr)
        if detail and os.environ.get("NE_DEBUG"):
            print(detail, file=sys.stderr)
        self.failed = self.failed or message
        if fatal:
            self.plan.spent = True

    # -- from one to the next

    def close_and_reopen(self, now: int, frame: FrameType | None) -> None:
        """The open step ends here, and so does the window."""
        self._steps.end(now)
        self.close(now)
        if self.plan.records(self._steps.number):
            self.open(frame)
        self._steps.begin(self.start_ns if self.recording else time.time_ns(), self.open_number)

    def open_at_step_end(self, frame: FrameType | None) -> None:
        """The open step, which was not recorded, ends here; the next one is."""
        now = time.time_ns()
        self._steps.end(now)
        self.open(frame)
        self._steps.begin(self.start_ns if self.recording else now, self.open_number)

    def _cut_by_time(self, frame: FrameType) -> None:
        """The window has lasted long and no step ended: cut it at the program's next line outside torch."""
        if not self.running or not self.recording:
            return
        if self._steps.marked_by is not None and self._steps.recorded > self._steps_at_open:
            return
        if self.recorder is None:
            self._cut_now()
        elif not self.recorder.at_next_line(_outside_torch(frame), self._cut_now):
            self._cut_soon.after(WINDOW_SECONDS / 10)

    def _cut_now(self) -> None:
        """End the window in the middle of a step and begin the next."""
        if self.running and self.recording:
            end = time.time_ns()
            self.close(end)
            if not self.plan.spent:
                self.open(sys._getframe(2))
            if self._steps.open is not None:
                self._steps.open.pause_ns += max(0, (self.start_ns or end) - end)

    def _give_way(self) -> None:
        """The program starts a torch profiler of its own."""
        if not self.recording or threading.get_ident() != self._thread:
            return
        self.gave_way += 1
        self.close(time.time_ns())
        if self._steps.open is not None:
            # Only part of this step is recorded.
            self._steps.open.broken = True


def _outside_torch(frame: FrameType | None) -> FrameType | None:
    """The innermost frame that is still outside the first call of torch."""
    chain: list[FrameType] = []
    while frame is not None:
        chain.append(frame)
        frame = frame.f_back
    outside: FrameType | None = None
    for frame in reversed(chain):
        if str(frame.f_globals.get("__name__", "")).startswith("torch."):
            break
        outside = frame
    return outside
