"""A running capture: windows of profiler and line records, written to the run one after the other."""

from __future__ import annotations

import contextlib
import gc
import os
import sys
import threading
import time
import traceback
from types import FrameType
from typing import Any

import numpy as np

from explorer.collectors.capture import guard
from explorer.collectors.capture.activities import choose_activities
from explorer.collectors.capture.calibration import measure_op_ns, measure_tracing, recorder_name
from explorer.collectors.capture.collectives import CollectiveRecorder
from explorer.collectors.capture.compile_pauses import CompilePauses
from explorer.collectors.capture.compile_ranges import around_ranges
from explorer.collectors.capture.compiled import CompileRecorder
from explorer.collectors.capture.coverage import Coverage
from explorer.collectors.capture.device_session import OneWindow, open_device_session
from explorer.collectors.capture.dimensions import Dimensions
from explorer.collectors.capture.dynamo_skips import DynamoSkips
from explorer.collectors.capture.file_io import FileIoRecorder
from explorer.collectors.capture.flight_entries import FlightEntries
from explorer.collectors.capture.fx_lines import FxLines
from explorer.collectors.capture.gc_recorder import GcRecorder
from explorer.collectors.capture.graph_replays import GraphReplays
from explorer.collectors.capture.host_event import HostEvent
from explorer.collectors.capture.host_info import clock_sample, device_rows, git_commit, host_info
from explorer.collectors.capture.host_states import HostStates
from explorer.collectors.capture.kineto_window import RawWindow, make_profiler, read_stacks, read_window
from explorer.collectors.capture.launcher import launched
from explorer.collectors.capture.loader_rows import LoaderRows
from explorer.collectors.capture.loader_watch import LoaderWatch
from explorer.collectors.capture.main_thread_call import MainThreadCall
from explorer.collectors.capture.module_paths import ModulePaths, module_call_code
from explorer.collectors.capture.other_profilers import OtherProfilers, another_is_running
from explorer.collectors.capture.secrets import mask_secrets
from explorer.collectors.capture.settings import CaptureSettings
from explorer.collectors.capture.source_paths import SourcePaths, project_root
from explorer.collectors.capture.source_snapshot import source_rows
from explorer.collectors.capture.step_marks import LoaderMarks, OptimizerMarks
from explorer.collectors.capture.steps import Step, Steps
from explorer.collectors.capture.termination import Termination
from explorer.collectors.capture.tracks import Tracks
from explorer.collectors.capture.window_plan import WindowPlan
from explorer.collectors.capture.window_tables import build_window
from explorer.collectors.lines.profiler_stacks import ProfilerStacks
from explorer.collectors.lines.records import LineRecorder
from explorer.collectors.lines.replay import Replay, ThreadStates
from explorer.collectors.lines.user_code import UserCode
from explorer.collectors.neuron.capture import NeuronCapture
from explorer.collectors.telemetry.recorder import TelemetryRecorder, counter_columns
from explorer.store.writer import RunWriter

TAKE_UP_SECONDS = 0.02
"""How long line recording stays off after a hot loop switched it off, unless a step ends before."""

LONGEST_WAIT_SECONDS = 1.0
"""The same where taking it up did not last: the wait doubles up to this."""

WINDOW_SECONDS = 10.0
"""A window in which no step ends is cut by time."""

LOADER_MARKS_AFTER = 16
"""Batches fetched without an optimizer step before batches count as steps."""


class Session:
    """One capture of one process. All methods but `forget_in_child` belong to the thread that started it."""

    def __init__(self, settings: CaptureSettings) -> None:
        self.settings = settings
        self.rank = settings.rank if settings.rank is not None else environment_rank()
        self.directory = settings.directory
        self._writer: RunWriter | None = None
        self._cost: dict[str, Any] = {}
        self._clock: list[dict[str, int]] = []
        if not settings.lazy:
            _ = self.writer
        self.profiler: Any = None
        self.device: NeuronCapture | None = None
        self.thread = threading.get_ident()
        self.in_child = False
        self.running = False
        self.recording = False
        self.plan = WindowPlan(settings.window_events, settings.max_events, settings.schedule)
        self.steps = Steps()
        self.user_code = UserCode(settings.user_code, settings.library_code)
        self.paths = SourcePaths(project_root())
        self.replay = Replay()
        self.fx = FxLines()
        self.dimensions = Dimensions(self.replay.chains, self.user_code, self.paths, self.fx)
        self.tracks = Tracks(threading.get_native_id())
        self.modules = ModulePaths()
        self.coverage = Coverage()
        self.recorder: LineRecorder | None = None
        self.stacks: ProfilerStacks | None = None
        self.gc = GcRecorder()
        self.files = FileIoRecorder()
        self.telemetry = TelemetryRecorder()
        self._samplers: list[str] = []
        self.compiler = CompileRecorder(self.fx)
        self.dynamo = DynamoSkips()
        self.collectives = CollectiveRecorder()
        self.flights = FlightEntries()
        self.graphs = GraphReplays()
        self.loaders = LoaderWatch(tuple(settings.user_code), tuple(settings.library_code))
        self.loader_rows = LoaderRows()
        self.extra: list[HostEvent] = []
        self.window = -1
        self.windows: list[dict[str, Any]] = []
        self._window_start = 0
        self._shapes_now = False
        self._shapes_done = False
        self._carried: dict[int, int] = {}
        self._next_event = 0
        self._activities: list[Any] = []
        self._failed: str | None = None
        self._first_mark: int | None = None
        self._cut_pending = False
        self._pause_start = 0
        self._recorder_started = False
        self.marks = OptimizerMarks(self._optimizer_stepped, self._mute, self._unmute)
        self.loader_marks = LoaderMarks(self._batch_wanted)
        self.compile_pauses = CompilePauses(self._mute, self._unmute)
        self._cut_soon = MainThreadCall(self._cut_by_time)
        self._wait_seconds = TAKE_UP_SECONDS
        self._taken_up = 0.0
        self._starting = False
        self.gave_way = 0
        self.others = OtherProfilers(lambda session: self._starting, self._give_way)
        self._batches = 0
        self._steps_at_open = 0
        self._muted = False
        self.termination = Termination(self.stop)
        self._take_up_soon = MainThreadCall(self._take_up)

    @property
    def writer(self) -> RunWriter:
        """Made when first needed: a launcher that only starts other processes writes nothing."""
        if self._writer is None:
            if self.settings.lazy:
                self.rank = self.settings.rank if self.settings.rank is not None else environment_rank()
            self._writer = RunWriter(self.settings.directory, rank=self.rank, made_by="capture")
            self.directory = self._writer.directory
        return self._writer

    # -- life

    def start(self, frame: FrameType | None) -> None:
        """Begin; `frame` is the innermost frame of the program."""
        settings = self.settings
        self._activities = choose_activities(settings.activities)
        if settings.device_profile:
            self.device = open_device_session(self.writer, self.rank)
            if self.device is not None:
                self.plan = OneWindow(settings.max_events, settings.schedule)
        self._calibrate()
        self._clock = [clock_sample()]
        if settings.lines:
            self.recorder = self._make_recorder()
            if self.recorder is None and sys.getprofile() is None:
                # Another tracer runs. With stacks the profiler replaces whatever profile function there is.
                self.stacks = ProfilerStacks(self.user_code, self.dimensions.qualified_name)
                self.dimensions.from_stacks = True
        if self.recorder is not None and threading.current_thread() is threading.main_thread():
            self.recorder.on_switched_off = self._switched_off
        self.running = True
        if settings.telemetry:
            self._samplers = self.telemetry.start()
        self.dynamo.start()
        self.gc.start()
        self.files.start()
        self.collectives.start()
        self.flights.start()
        if settings.lines:
            self.compiler.start()
            self.compile_pauses.start()
            self.loaders.start()
            self.fx.start()
        self.marks.start()
        self.loader_marks.start()
        self.others.start()
        self.termination.start()
        now = time.time_ns()
        if self.plan.records(0):
            self._open_window(frame)
            now = self._window_start
        self.steps.begin(now, self.window if self.recording else None)

    def step(self, frame: FrameType | None) -> None:
        """The program says that a step ends here."""
        if not self.running or self.in_child:
            return
        if threading.get_ident() != self.thread:
            return
        self.steps.marked_by = "step()"
        self._cut_pending = False
        self._recover(frame)
        self._step_ended(time.time_ns(), frame)
        if self.recorder is not None and self.recording:
            self.recorder.take_up(frame, at_step=True)

    def _optimizer_stepped(self) -> None:
        """Without `step()` calls, the leading optimizer's steps end the program's."""
        if not self._may_mark() or self.steps.marked_by == "step()":
            return
        now = time.time_ns()
        if self.steps.marked_by == "DataLoader":
            self.steps.marked_by = "optimizer.step()"
        if self.steps.marked_by is None:
            # One step alone may be followed by step() calls that know better; the second settles it.
            first, self._first_mark = self._first_mark, now
            if first is None:
                return
            self.steps.marked_by = "optimizer.step()"
            # What came before the first mark holds the program's set-up as well.
            self.steps.end(first, complete=False)
            self.plan.step_ended(0)
            self.steps.begin(first, self.window if self.recording else None)
        self._mark(now)

    def _batch_wanted(self) -> None:
        """A program that fetches batches and never steps an optimizer: an iteration ends where the next batch is wanted."""
        if (
            not self._may_mark()
            or self.steps.marked_by not in (None, "DataLoader")
            or self._first_mark is not None
        ):
            return
        self._batches += 1
        if self.steps.marked_by is None:
            if self._batches < LOADER_MARKS_AFTER:
                return
            self.steps.marked_by = "DataLoader"
            now = time.time_ns()
            self.steps.end(now, complete=False)
            self.steps.begin(now, self.window if self.recording else None)
        else:
            self._mark(time.time_ns())

    def _may_mark(self) -> bool:
        return self.running and not self.in_child and threading.get_ident() == self.thread

    def _mark(self, now: int) -> None:
        """A step ends, seen from inside a call of the library."""
        number = self.steps.number
        if self.recording and not self._cut_pending and self.plan.step_ended(number) == "cut":
            # The profiler must not stop inside the optimizer's own range: wait for the program's next line.
            if self.recorder is None:
                # Nothing tells when the next line comes: the optimizer's own range is cut short.
                self._close_and_reopen(now, sys._getframe())
                return
            self._cut_pending = True
            if self._cut_at_next_line(sys._getframe()):
                return
            # No line will come (tracing was switched off in a hot call): the next step asks again.
            self._cut_pending = False
        elif self._cut_pending:
            return
        elif not self.recording and self.plan.records(number + 1):
            self._open_at_step_end(sys._getframe())
            return
        self.steps.end(now)
        self.steps.begin(now, self.window if self.recording else None)
        if self.recorder is not None and self.recording:
            self.recorder.take_up(sys._getframe(), at_step=True)

    def _mute(self) -> None:
        if self.recording and self.recorder is not None and threading.get_ident() == self.thread:
            self._recover(sys._getframe())
            self._muted = self.recorder.mute()

    def _recover(self, frame: FrameType | None) -> None:
        """An optimizer step that raised never came to its end: frames came and went unseen since."""
        if self._muted and self.recorder is not None and self.recording:
            self.recorder.resume(frame)
        self._muted = False

    def _unmute(self) -> None:
        if self._muted and self.recorder is not None and threading.get_ident() == self.thread:
            self._muted = False
            if self.recording:
                self.recorder.unmute()

    def _cut_at_next_line(self, frame: FrameType) -> bool:
        def cut() -> None:
            if self._cut_pending and self.running:
                self._cut_pending = False
                self._close_and_reopen(time.time_ns(), sys._getframe(2))

        return self.recorder is not None and self.recorder.at_next_line(frame, cut)

    def _open_at_step_end(self, frame: FrameType | None) -> None:
        now = time.time_ns()
        self.steps.end(now)
        self._open_window(frame)
        self.steps.begin(
            self._window_start if self.recording else now, self.window if self.recording else None
        )

    def _cut_by_time(self) -> None:
        """The window has lasted long and no step ended: cut it at the program's next line outside torch."""
        if not self.running or not self.recording:
            return
        if self.steps.marked_by is not None and self.steps.recorded > self._steps_at_open:
            return
        if self.recorder is None:
            self._cut_now()
            return
        chain: list[FrameType] = []
        frame: FrameType | None = sys._getframe(2)
        while frame is not None:
            chain.append(frame)
            frame = frame.f_back
        outside: FrameType | None = None
        for frame in reversed(chain):
            if str(frame.f_globals.get("__name__", "")).startswith("torch."):
                break
            outside = frame

        if not self.recorder.at_next_line(outside, self._cut_now):
            self._cut_soon.after(WINDOW_SECONDS / 10)

    def _cut_now(self) -> None:
        """End the window in the middle of a step and begin the next."""
        if self.running and self.recording:
            end = time.time_ns()
            self._close_window(end)
            if not self.plan.spent:
                self._open_window(sys._getframe(2))
            if self.steps.open is not None:
                self.steps.open.pause_ns += max(0, (self._window_start or end) - end)

    def _close_and_reopen(self, now: int, frame: FrameType | None) -> None:
        """The open step ends here, and so does the window."""
        self.steps.end(now)
        self._close_window(now)
        if self.plan.records(self.steps.number):
            self._open_window(frame)
        self.steps.begin(
            self._window_start if self.recording else time.time_ns(),
            self.window if self.recording else None,
        )

    def _switched_off(self) -> None:
        """A hot loop switched a thread's lines off: take them up soon, later where the last taking up did not last."""
        lasted = time.monotonic() - self._taken_up
        short = lasted < 5 * self._wait_seconds
        self._wait_seconds = min(2 * self._wait_seconds, LONGEST_WAIT_SECONDS) if short else TAKE_UP_SECONDS
        self._take_up_soon.after(self._wait_seconds)

    def _give_way(self) -> None:
        """The program starts a torch profiler of its own."""
        if not self.recording or self.in_child or threading.get_ident() != self.thread:
            return
        self.gave_way += 1
        self._cut_pending = False
        self._close_window(time.time_ns())
        if self.steps.open is not None:
            # Only part of this step is recorded.
            self.steps.open.broken = True

    def _take_up(self) -> None:
        if self.running and self.recording and self.recorder is not None:
            if self.recorder.take_up(sys._getframe(2)):
                self._taken_up = time.monotonic()
            else:
                self._wait_seconds = min(2 * self._wait_seconds, LONGEST_WAIT_SECONDS)
                self._take_up_soon.after(self._wait_seconds)

    def stop(self, frame: FrameType | None = None) -> None:
        """End: write the open window, finish the manifest. Safe to call twice."""
        if not self.running or self.in_child:
            return
        self.running = False
        now = time.time_ns()
        if self.recording:
            self.steps.end(now, complete=False)
            self._close_window(now)
        self._disarm()
        guard.release(self)
        if self._writer is not None or not self.settings.lazy:
            self._finish()

    def _disarm(self) -> None:
        if self.recorder is not None:
            self.recorder.stop()
        self.telemetry.stop()
        self.gc.stop()
        self.files.stop()
        self.dynamo.stop()
        self.compile_pauses.stop()
        self.compiler.stop()
        self.collectives.stop()
        self.flights.stop()
        self.marks.stop()
        self.loader_marks.stop()
        self.loaders.stop()
        self.fx.stop()
        self.others.stop()
        self.termination.stop()
        self._take_up_soon.stop()
        self._cut_soon.stop()

    def forget_in_child(self) -> None:
        """In a forked child: drop everything, write nothing."""
        self.in_child = True
        self.running = False
        self.recording = False
        self.telemetry.forget()
        self.gc.stop()
        self.files.stop()
        self.dynamo.stop()
        self.compile_pauses.stop()
        self.compiler.stop()
        self.collectives.stop()
        self.flights.stop()
        self.marks.stop()
        self.loader_marks.stop()
        self.loaders.stop()
        self.fx.stop()
        self.others.stop()
        self.termination.forget()
        self._take_up_soon.forget()
        self._cut_soon.forget()
        if self.recorder is not None:
            with contextlib.suppress(Exception):
                self.recorder.stop()

    def abandon(self) -> None:
        """In a process that turns out to be another capture's DataLoader worker: end and write nothing."""
        if self.recording:
            with contextlib.suppress(Exception):
                self.profiler.stop()
        self.running = self.recording = False
        self._disarm()
        guard.release(self)

    # -- steps and windows

    def _step_ended(self, now: int, frame: FrameType | None) -> None:
        if self.recording and self.plan.step_ended(self.steps.number) == "cut":
            self._close_and_reopen(now, frame)
        elif not self.recording and self.plan.records(self.steps.number + 1):
            self._open_at_step_end(frame)
        else:
            self.steps.end(now)
            self.steps.begin(now, self.window if self.recording else None)

    def _open_window(self, frame: FrameType | None) -> None:
        settings = self.settings
        if another_is_running():
            return
        wanted = settings.record_shapes
        self._shapes_now = wanted is True or (wanted == "sample" and not self._shapes_done)
        self._starting = True
        try:
            self.profiler = make_profiler(
                self._activities,
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
        self.window += 1
        self.recording = True
        if self.recorder is not None:
            try:
                if not self._recorder_started:
                    self.recorder.start(frame)
                    self._recorder_started = True
                else:
                    self.recorder.resume(frame)
            except Exception as error:
                self.recorder = None
                self._fail(f"the line recorder could not start: {error}", fatal=False)
        self.gc.enabled = self.files.enabled = self.collectives.enabled = True
        self._steps_at_open = self.steps.recorded
        if threading.current_thread() is threading.main_thread() and self.device is None:
            self._cut_soon.after(WINDOW_SECONDS)
        self._window_start = time.time_ns()
        if self._pause_start:
            # What the hand-over cost is an event of its own: a gap that explains itself.
            self.extra.append(
                HostEvent(
                    threading.get_native_id(),
                    "overhead",
                    "neuron_profile: window written",
                    self._pause_start,
                    self._window_start - self._pause_start,
                )
            )
            self._pause_start = 0

    def _close_window(self, end_ns: int) -> None:
        """Stop recording, read, write, publish. Nothing in here may reach the program."""
        begin = time.time_ns()
        if self.recorder is not None:
            self.recorder.pause()
        self.gc.enabled = self.files.enabled = self.collectives.enabled = False
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
            raw = read_window(self.profiler, without_python=self.stacks is not None)
            events = self._write_window(raw, end_ns) if len(raw) or self._writer is not None else 0
        except Exception as error:
            self._fail(f"a window could not be written: {error}", detail=traceback.format_exc())
            events, stopped = 0, time.time_ns()
        finally:
            if collecting:
                gc.enable()
        self.plan.window_closed(events)
        self._shapes_done = self._shapes_done or self._shapes_now
        done = time.time_ns()
        self.windows.append(
            {
                "window": self.window,
                "start_ns": self._window_start,
                "duration_ns": end_ns - self._window_start,
                "events": events,
                "shapes": bool(self._shapes_now),
                "stop_ns": stopped - begin,
                "write_ns": done - stopped,
            }
        )
        if not self.settings.compat:
            self.profiler.profiler = None
        if self.plan.spent:
            self.loaders.dismiss()

    def _write_window(self, raw: RawWindow, end_ns: int) -> int:
        if not self.running and self.steps.drop_empty_tail(
            self._window_start, int(raw.starts.max(initial=0))
        ):
            self.steps.recorded -= 1
        states = HostStates(self._thread_states(), self._carried, self._window_start, end_ns)
        extra = self.extra + self.gc.take() + self.files.take() + around_ranges(self.compiler.take(), raw)
        self.extra = []
        built = build_window(
            raw,
            extra,
            states,
            self.dimensions,
            self.tracks,
            self.steps.intervals(end_ns),
            self._next_event,
            self.coverage,
            self.rank,
            np.array(self.modules.module_ids, dtype=np.int64),
            self.compiler,
            self.collectives,
            self.flights,
            self.graphs,
        )
        if modules := self.modules.take(built.modules):
            self.writer.write("modules", modules)
        self._next_event = built.next_event_id
        stacks, sites, _ = self.dimensions.arrays()
        host = states.rows(self.tracks, stacks, sites)
        writer = self.writer
        intervals = self.steps.intervals(end_ns)
        writer.write("events", built.tables.pop("events"), presorted=True)
        for table, content in built.tables.items():
            writer.write(table, content)
        if host is not None:
            writer.write("host_states", host)
        self._write_workers(built.data_rows, intervals, end_ns)
        self._write_small_tables()
        self._describe(finished=False)
        writer.commit()
        return built.events

    def _thread_states(self) -> list[ThreadStates]:
        if self.stacks is not None:
            try:
                return self.stacks.states(*read_stacks(self.profiler), self.replay.chains)
            except Exception as error:
                self._fail(
                    f"a window has no lines: its stacks could not be read: {error}",
                    detail=traceback.format_exc(),
                    fatal=False,
                )
                return []
        return self.replay.states(self.recorder.take() if self.recorder is not None else [])

    def _write_workers(self, data_rows: list[tuple[int, int, int]], steps: list[Step], end_ns: int) -> None:
        """What DataLoader workers handed over since the last time."""
        pieces, waits = self.loaders.take()
        if not pieces and not waits:
            self.loader_rows.know_steps(steps)
            return
        continuous = self.settings.schedule is None
        windows = [(w["start_ns"], w["start_ns"] + w["duration_ns"]) for w in self.windows]
        tables, self._next_event = self.loader_rows.tables(
            pieces,
            waits,
            data_rows,
            steps,
            None if continuous else [*windows, (self._window_start, end_ns)],
            self.dimensions,
            self.tracks,
            self._next_event,
            self.rank,
        )
        for table, content in tables.items():
            self.writer.write(table, content)

    def _write_small_tables(self) -> None:
        writer = self.writer
        if rows := self.steps.rows():
            writer.write("steps", rows)
        if readings := self.telemetry.take():
            counters = counter_columns(
                readings, lambda r: self.tracks.counter(r.label, r.device_type, r.device_index)
            )
            writer.write("counters", counters)
        if tracks := self.tracks.take():
            writer.write("tracks", tracks)
        sites, stacks = self.dimensions.take()
        if sites:
            writer.write("sites", sites)
        if stacks:
            writer.write("stacks", stacks)

    # -- the end

    def _finish(self) -> None:
        writer = self.writer
        self._write_workers([], [], self._window_start)
        self.loaders.dismiss()
        self._write_small_tables()
        if self.settings.sources:
            rows = source_rows(self.dimensions.user_files, self.paths)
            if rows:
                writer.write("sources", rows)
        if self.device is not None:
            self.device.finish(
                writer,
                first_event=self._next_event,
                first_track=self.tracks.next_number,
                project_root=self.paths.root,
            )
        self._clock.append(clock_sample())
        self._describe(finished=True)
        self._say_health()
        writer.close()
        if self.settings.on_run_ready is not None:
            self.settings.on_run_ready(self.directory)

    def _describe(self, *, finished: bool) -> None:
        """Bring the manifest up to date."""
        manifest = self.writer.manifest
        if not manifest.host:
            manifest.host = host_info()
            manifest.command = mask_secrets(_command())
            manifest.git_commit = git_commit(self.paths.root)
            manifest.attributes["project_root"] = self.paths.root.rstrip("/")
            self.writer.write("devices", device_rows())
        manifest.world_size = _world_size() or manifest.world_size
        manifest.cost = self._cost
        manifest.clock = self._clock
        manifest.capture = self._capture_summary(finished=finished)

    def _capture_summary(self, *, finished: bool) -> dict[str, Any]:
        settings = self.settings
        return {
            "activities": [str(getattr(a, "name", a)) for a in self._activities],
            "lines": next((one.method for one in (self.recorder, self.stacks) if one is not None), None),
            "record_shapes": settings.record_shapes,
            "profile_memory": settings.profile_memory,
            "threads": settings.threads,
            "max_events": settings.max_events,
            "telemetry": self._samplers,
            "telemetry_failed": self.telemetry.failed,
            "loader_workers": len(self.loader_rows.workers),
            "steps_marked_by": self.steps.marked_by,
            "steps_recorded": self.steps.recorded,
            "steps_not_recorded": self.steps.unrecorded,
            "windows": self.windows,
            "coverage": {
                phase: {
                    kind: self.coverage.self_ns.get((phase, kind), 0)
                    for kind in ("exact", "inferred", "none")
                }
                for phase in sorted({phase for phase, _ in self.coverage.self_ns})
            },
            "complete": finished,
        }

    def _say_health(self) -> None:
        say = self.writer.health
        if self._failed:
            say("capture_failed", "error", 1, f"Capture ended early: {self._failed}", None, "everything")
        if self.steps.unrecorded:
            why = (
                f"the limit of {self.settings.max_events:,} events per rank was reached"
                if self.plan.spent
                else "the program's own profiler was running"
                if self.gave_way and self.settings.schedule is None
                else "the schedule left them out"
            )
            say(
                "not_captured",
                "info",
                self.steps.unrecorded,
                f"{self.steps.unrecorded} steps ran without being recorded: {why}.",
                "Raise max_events or change the schedule to record more steps.",
                "steps",
            )
        if self.stacks is not None:
            say(
                "lines_from_stacks",
                "warning",
                1,
                "Another tracer (a debugger, coverage) is active, so lines come from the profiler's Python stacks: exact inside"
                " calls, likely for operators; no modules, no other threads, and recording costs more.",
                "Run without a debugger or coverage tool, or on Python 3.12 or later.",
                "lines, bottlenecks",
            )
        elif self.recorder is None:
            say(
                "no_lines",
                "warning",
                1,
                "No source lines were recorded: "
                + (
                    "lines=False."
                    if not self.settings.lines
                    else "another tracer and a profile function are active."
                ),
                "Run without a debugger or coverage tool, with lines=True.",
                "lines, bottlenecks",
            )
        elif self.recorder.hot:
            names = ", ".join(sorted(f"{code.co_qualname}" for code in self.recorder.hot)[:5])
            say(
                "coarse_lines",
                "info",
                len(self.recorder.hot),
                f"Lines were given up for hot pure-Python code ({names}): only the function is known there.",
                None,
                "lines",
            )
        if self.recorder is not None and self.recorder.displaced:
            say(
                "tracer_took_over",
                "warning",
                self.recorder.displaced,
                "Another tracer (a debugger, coverage) was started while recording: there are no lines while it ran.",
                "Run without it, or on Python 3.12 or later.",
                "lines",
            )
        if self.loader_rows.full or self.loader_rows.hot:
            names = ", ".join(sorted(self.loader_rows.hot)[:5])
            say(
                "coarse_lines",
                "info",
                max(1, len(self.loader_rows.hot)),
                "Lines were given up in DataLoader workers: "
                + (f"hot pure-Python code ({names})" if names else "more states than a worker keeps")
                + ".",
                None,
                "lines",
            )
        if self.gave_way:
            say(
                "program_profiler",
                "warning",
                self.gave_way,
                f"The program started a torch profiler of its own {self.gave_way} times: nothing was recorded while it ran.",
                "Switch the program's profiler off to record every step.",
                "steps",
            )
        if self.files.dropped:
            say(
                "io_not_kept",
                "info",
                self.files.dropped,
                "More file operations than a window keeps: the rest is counted only.",
                None,
                "file_io",
            )
        if self.gc.short_passes:
            say(
                "short_gc_passes",
                "info",
                self.gc.short_passes,
                f"{self.gc.short_passes} garbage collections shorter than 20 us took {self.gc.short_ns / 1e6:.2f} ms"
                " in all; they are not events.",
                None,
                None,
            )
        if self.settings.threads == "all" and self.settings.profile_memory:
            say(
                "threads_left_out",
                "warning",
                1,
                "Ops of other Python threads were not recorded: the profiler cannot report memory at the same time.",
                "Use threads='all' without profile_memory.",
                "ops",
            )
        total = sum(self.coverage.self_ns.values())
        unknown = sum(v for (_, kind), v in self.coverage.self_ns.items() if kind == "none")
        if total and (self.recorder or self.stacks) and unknown / total > 0.001:
            say(
                "ops_without_line",
                "info",
                0,
                f"{unknown / total:.1%} of host op time has no source line (threads without Python frames, or ops"
                " outside user code).",
                None,
                "lines",
            )

    # -- parts

    def _make_recorder(self) -> LineRecorder | None:
        modules: dict[str, Any] = {}
        if self.settings.modules and (code := module_call_code()) is not None:
            modules = {"module_call": code, "module_key": self.modules.key}
        if hasattr(sys, "monitoring"):
            from explorer.collectors.lines.monitoring_recorder import MonitoringRecorder

            return MonitoringRecorder(self.user_code, **modules)
        if sys.gettrace() is not None:
            return None
        from explorer.collectors.lines.settrace_recorder import SettraceRecorder

        return SettraceRecorder(self.user_code, **modules)

    def _calibrate(self) -> None:
        cost: dict[str, Any] = {"method": "kineto"}
        try:
            cost["op_ns"] = round(
                measure_op_ns(
                    lambda: make_profiler(
                        self._activities,
                        shapes=self.settings.record_shapes is True,
                        memory=self.settings.profile_memory,
                        all_threads=False,
                        compat=False,
                    )
                ),
                1,
            )
            if self.settings.lines and not (sys.gettrace() and not hasattr(sys, "monitoring")):
                tracing = measure_tracing(lambda: self._make_recorder())
                cost |= {
                    "line_ns": round(tracing.line_ns, 1),
                    "call_ns": round(tracing.call_ns, 1),
                    "module_ns": round(tracing.module_ns, 1),
                    "method": f"kineto + {recorder_name()}",
                }
        except Exception as error:
            cost["failed"] = str(error)
        self._cost = cost

    def _fail(self, message: str, *, detail: str = "", fatal: bool = True) -> None:
        print(f"neuron-explorer: {message}", file=sys.stderr)
        if detail and os.environ.get("NE_DEBUG"):
            print(detail, file=sys.stderr)
        self._failed = self._failed or message
        if fatal:
            self.plan.spent = True


def environment_rank() -> int:
    """Rank from torch.distributed where it runs, else from the launcher's environment."""
    torch = sys.modules.get("torch")
    try:
        if torch is not None and torch.distributed.is_available() and torch.distributed.is_initialized():
            return int(torch.distributed.get_rank())
    except Exception:
        pass
    return launched()[0] or 0


def _world_size() -> int | None:
    torch = sys.modules.get("torch")
    try:
        if torch is not None and torch.distributed.is_available() and torch.distributed.is_initialized():
            return int(torch.distributed.get_world_size())
    except Exception:
        pass
    return launched()[1]


def _command() -> list[str]:
    return list(getattr(sys, "orig_argv", None) or [sys.executable, *sys.argv])
