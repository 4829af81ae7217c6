"""A running capture of one process: its parts put together, started, stopped and put away."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from types import FrameType
from typing import Any

from explorer.collectors.capture import guard
from explorer.collectors.capture.activities import choose_activities
from explorer.collectors.capture.capture_health import say_health
from explorer.collectors.capture.device_session import open_device_session
from explorer.collectors.capture.host_info import clock_sample, device_rows, git_commit, host_info
from explorer.collectors.capture.line_source import make_line_recorder, stacks_can_serve
from explorer.collectors.capture.line_take_up import LineTakeUp
from explorer.collectors.capture.pinned_lines import PinnedLines
from explorer.collectors.capture.process_rank import world_size
from explorer.collectors.capture.python_watch import PythonWatch
from explorer.collectors.capture.recording_cost import costs_here, recording_cost
from explorer.collectors.capture.run_tables import RunTables
from explorer.collectors.capture.secrets import mask_secrets
from explorer.collectors.capture.settings import CaptureSettings
from explorer.collectors.capture.side_recorders import SideRecorders
from explorer.collectors.capture.step_ends import StepEnds
from explorer.collectors.capture.steps import Steps
from explorer.collectors.capture.termination import Termination
from explorer.collectors.capture.windows import Windows
from explorer.collectors.capture.zero_code import RECORDING
from explorer.collectors.lines.profiler_stacks import ProfilerStacks
from explorer.collectors.lines.records import LineRecorder


class Session:
    """One capture of one process. All methods but `forget_in_child` belong to the thread that started it."""

    def __init__(self, settings: CaptureSettings) -> None:
        self.settings = settings
        self.thread = threading.get_ident()
        self.steps = Steps()
        pins = PinnedLines(self._recording_lines)
        self.side = SideRecorders(settings, pins)
        self.tables = RunTables(settings, self.side, self.steps)
        self.windows = Windows(
            settings, self.tables, self.side, self.steps, lambda: self._describe(finished=False)
        )
        self._step_ends = StepEnds(self.windows, self.steps, pins, self._is_ours)
        self._take_up = LineTakeUp(self.windows)
        self._python_watch = PythonWatch(self.windows)
        self._termination = Termination(self.stop)
        self._cost: dict[str, Any] = {}
        self._clock: list[dict[str, int]] = []
        self._in_child = False

    @property
    def directory(self) -> str:
        """Where the run is written."""
        return self.tables.directory

    @property
    def profiler(self) -> Any:
        """The torch.profiler session of the window that is open, or was last."""
        return self.windows.profiler

    @property
    def running(self) -> bool:
        """From `start` to `stop`."""
        return self.windows.running

    def _is_ours(self) -> bool:
        return self.running and not self._in_child and threading.get_ident() == self.thread

    def _recording_lines(self) -> LineRecorder | None:
        return self.windows.recorder if self.windows.recording and not self._in_child else None

    def start(self, frame: FrameType | None) -> None:
        """Begin; `frame` is the innermost frame of the program."""
        settings, windows = self.settings, self.windows
        windows.activities = choose_activities(settings.activities)
        if settings.device_profile:
            device = open_device_session(self.tables.writer, self.tables.rank)
            if device is not None:
                windows.use_device(device)
        self._cost = recording_cost(settings, windows.activities, self._make_recorder)
        self._clock = [clock_sample()]
        if settings.lines:
            windows.recorder = self._make_recorder()
            if windows.recorder is None and stacks_can_serve():
                windows.stacks = ProfilerStacks(self.tables.user_code, self.tables.dimensions.qualified_name)
                self.tables.dimensions.from_stacks = True
            if windows.recorder is not None:
                windows.recorder.costs = costs_here(self._cost)
        self._take_up.start()
        self._python_watch.start()
        windows.running = True
        self.side.start()
        self._step_ends.start(lines=settings.lines)
        windows.start()
        self._termination.start()
        now = time.time_ns()
        if windows.plan.records(0):
            windows.open(frame)
            now = windows.start_ns
        self.steps.begin(now, windows.open_number)

    def _make_recorder(self) -> LineRecorder | None:
        return make_line_recorder(
            self.tables.user_code, self.tables.modules if self.settings.modules else None
        )

    def step(self, frame: FrameType | None) -> None:
        """The program says that a step ends here."""
        if self._is_ours():
            self._step_ends.step(frame)

    def stop(self, frame: FrameType | None = None) -> None:
        """End: write the open window, finish the manifest. Safe to call twice."""
        if not self.running or self._in_child:
            return
        self.windows.running = False
        now = time.time_ns()
        if self.windows.recording:
            self.steps.end(now, complete=False)
            self.windows.close(now)
        self._disarm()
        guard.release(self)
        if self.tables.has_writer and self._finished() and self.settings.on_run_ready is not None:
            self.settings.on_run_ready(self.directory)

    def _disarm(self) -> None:
        self.windows.stop()
        self.side.stop()
        self._step_ends.stop()
        self._termination.stop()
        self._take_up.stop()
        self._python_watch.stop()

    def forget_in_child(self) -> None:
        """In a forked child: drop everything, write nothing."""
        self._in_child = True
        self.windows.forget()
        self.side.forget()
        self._step_ends.stop()
        self._termination.forget()
        self._take_up.forget()
        self._python_watch.forget()

    def abandon(self) -> None:
        """In a process that turns out to be another capture's DataLoader worker: end and write nothing."""
        if self.windows.recording:
            with contextlib.suppress(Exception):
                self.profiler.stop()
        self.windows.running = self.windows.recording = False
        self._disarm()
        guard.release(self)

    # -- the end

    def _finished(self) -> bool:
        """Finish the run. What fails (a full disk, a folder that is gone) is said, and the program goes on."""
        try:
            self._finish()
        except Exception as error:
            print(f"neuron-explorer: the run is incomplete: {type(error).__name__}: {error}", file=sys.stderr)
            return False
        return True

    def _finish(self) -> None:
        tables = self.tables
        tables.write_rest()
        if self.windows.device is not None:
            self.windows.device.finish(
                tables.writer,
                first_event=tables.next_event,
                first_track=tables.tracks.next_number,
                project_root=tables.paths.root,
            )
        self._clock.append(clock_sample())
        self._describe(finished=True)
        say_health(self.settings, self.windows, tables, self.side, self.steps)
        tables.writer.close()

    def _describe(self, *, finished: bool) -> None:
        """Bring the manifest up to date."""
        tables = self.tables
        manifest = tables.writer.manifest
        if not manifest.host:
            manifest.host = host_info()
            manifest.command = mask_secrets(_command())
            manifest.git_commit = git_commit(tables.paths.root)
            manifest.attributes["project_root"] = tables.paths.root.rstrip("/")
            if recording := os.environ.get(RECORDING):
                manifest.attributes["recording"] = recording
            tables.writer.write("devices", device_rows())
        manifest.world_size = world_size() or manifest.world_size
        manifest.cost = self._cost
        manifest.clock = self._clock
        manifest.capture = self._account(finished=finished)

    def _account(self, *, finished: bool) -> dict[str, Any]:
        """What the manifest says of the capture."""
        settings, windows, tables, side = self.settings, self.windows, self.tables, self.side
        sources = (windows.recorder, windows.stacks)
        return {
            "activities": [str(getattr(a, "name", a)) for a in windows.activities],
            "lines": next((source.method for source in sources if source is not None), None),
            "record_shapes": settings.record_shapes,
            "profile_memory": settings.profile_memory,
            "threads": settings.threads,
            "max_events": settings.max_events,
            "telemetry": side.samplers,
            "telemetry_failed": side.telemetry.failed,
            "loader_workers": len(tables.loader_rows.workers),
            "steps_marked_by": self.steps.marked_by,
            "steps_recorded": self.steps.recorded,
            "steps_not_recorded": self.steps.unrecorded,
            "windows": windows.rows,
            "coverage": tables.coverage.by_phase(),
            "complete": finished,
        }


def _command() -> list[str]:
    return list(getattr(sys, "orig_argv", None) or [sys.executable, *sys.argv])
