"""Everything that records beside the profiler and the line recorder, as one: armed, switched, emptied, put away together."""

from __future__ import annotations

from explorer.collectors.capture.collectives import CollectiveRecorder
from explorer.collectors.capture.compile_ranges import around_ranges
from explorer.collectors.capture.compiled import CompileRecorder
from explorer.collectors.capture.compiled_modules import CompiledModules
from explorer.collectors.capture.dynamo_skips import DynamoSkips
from explorer.collectors.capture.file_io import FileIoRecorder
from explorer.collectors.capture.flight_entries import FlightEntries
from explorer.collectors.capture.fx_lines import FxLines
from explorer.collectors.capture.gc_recorder import GcRecorder
from explorer.collectors.capture.host_event import HostEvent
from explorer.collectors.capture.kineto_window import RawWindow
from explorer.collectors.capture.loader_watch import LoaderWatch
from explorer.collectors.capture.module_paths import ModulePaths
from explorer.collectors.capture.pinned_lines import PinnedLines
from explorer.collectors.capture.settings import CaptureSettings
from explorer.collectors.telemetry.recorder import TelemetryRecorder


class SideRecorders:
    """Garbage collection, files, telemetry, compilations, collectives, DataLoader workers."""

    def __init__(self, settings: CaptureSettings, pins: PinnedLines) -> None:
        self._settings = settings
        self.gc = GcRecorder()
        self.files = FileIoRecorder(pins)
        self.telemetry = TelemetryRecorder()
        self.samplers: list[str] = []
        self.modules = ModulePaths()
        self.compiled_modules = CompiledModules(self.modules)
        self.fx = FxLines(self.compiled_modules)
        self.compiler = CompileRecorder(self.fx, self.compiled_modules)
        self.collectives = CollectiveRecorder(pins)
        self.flights = FlightEntries()
        self.loaders = LoaderWatch(tuple(settings.user_code), tuple(settings.library_code))
        self._dynamo = DynamoSkips()

    def start(self) -> None:
        if self._settings.telemetry:
            self.samplers = self.telemetry.start()
        self._dynamo.start()
        self.gc.start()
        self.files.start()
        self.collectives.start()
        self.flights.start()
        if self._settings.lines:
            self.compiler.start()
            self.loaders.start()
            self.fx.start()
            if self._settings.modules:
                self.compiled_modules.start()

    def enable(self, on: bool) -> None:
        """Between windows nothing is noted."""
        self.gc.enabled = self.files.enabled = self.collectives.enabled = on

    def events(self, raw: RawWindow) -> list[HostEvent]:
        """What was noted since the last call; `raw` is the profile of the same time."""
        return self.gc.take() + self.files.take() + around_ranges(self.compiler.take(), raw)

    def stop(self) -> None:
        self.telemetry.stop()
        self._stop_watching()

    def forget(self) -> None:
        """In a forked child."""
        self.telemetry.forget()
        self._stop_watching()

    def _stop_watching(self) -> None:
        for one in (
            self.gc,
            self.files,
            self._dynamo,
            self.compiler,
            self.collectives,
            self.flights,
            self.loaders,
            self.fx,
            self.compiled_modules,
        ):
            one.stop()
