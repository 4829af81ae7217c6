"""What a capture writes: the run's tables, window by window, and the dimensions that outlive a window."""

from __future__ import annotations

import threading

from explorer.collectors.capture.coverage import Coverage
from explorer.collectors.capture.dimensions import Dimensions
from explorer.collectors.capture.earlier_window import EarlierWindow
from explorer.collectors.capture.graph_replays import GraphReplays
from explorer.collectors.capture.host_event import HostEvent
from explorer.collectors.capture.host_states import HostStates
from explorer.collectors.capture.kineto_window import RawWindow
from explorer.collectors.capture.loader_rows import LoaderRows
from explorer.collectors.capture.process_rank import environment_rank
from explorer.collectors.capture.settings import CaptureSettings
from explorer.collectors.capture.side_recorders import SideRecorders
from explorer.collectors.capture.source_paths import SourcePaths, project_root
from explorer.collectors.capture.source_snapshot import source_rows
from explorer.collectors.capture.steps import Step, Steps
from explorer.collectors.capture.tracks import Tracks
from explorer.collectors.capture.window_tables import build_window
from explorer.collectors.lines.replay import Replay, ThreadStates
from explorer.collectors.lines.user_code import UserCode
from explorer.collectors.telemetry.recorder import counter_columns
from explorer.store.writer import RunWriter


class RunTables:
    """Writes the windows of one capture of one process."""

    def __init__(self, settings: CaptureSettings, side: SideRecorders, steps: Steps) -> None:
        self._settings = settings
        self._side = side
        self._steps = steps
        self.rank = self._rank()
        self.directory = settings.directory
        self._writer: RunWriter | None = None
        if not settings.lazy:
            _ = self.writer
        self.user_code = UserCode(settings.user_code, settings.library_code)
        self.paths = SourcePaths(project_root())
        self.replay = Replay()
        self.dimensions = Dimensions(self.replay.chains, self.user_code, self.paths, side.fx)
        self.tracks = Tracks(threading.get_native_id())
        self.modules = side.modules
        self.coverage = Coverage()
        self.loader_rows = LoaderRows()
        self.next_event = 0
        self._graphs = GraphReplays()
        self._earlier = EarlierWindow()
        self._carried: dict[int, int] = {}
        self._written: list[tuple[int, int]] = []
        """Times that windows covered."""

    def _rank(self) -> int:
        return self._settings.rank if self._settings.rank is not None else environment_rank()

    @property
    def writer(self) -> RunWriter:
        """Made when first needed: a launcher that only starts other processes writes nothing."""
        if self._writer is None:
            if self._settings.lazy:
                self.rank = self._rank()
            self._writer = RunWriter(self._settings.directory, rank=self.rank, made_by="capture")
            self.directory = self._writer.directory
        return self._writer

    @property
    def has_writer(self) -> bool:
        """Whether anything has been or must be written."""
        return self._writer is not None or not self._settings.lazy

    def write_window(
        self,
        raw: RawWindow,
        threads: list[ThreadStates],
        extra: list[HostEvent],
        start_ns: int,
        end_ns: int,
    ) -> int:
        """Write all rows of a window that is over, not yet published; returns the number of its events."""
        states = HostStates(threads, self._carried, start_ns, end_ns)
        steps = self._steps.intervals(end_ns)
        built = build_window(
            raw,
            extra,
            states,
            self.dimensions,
            self.tracks,
            steps,
            self.next_event,
            self.coverage,
            self.rank,
            self.modules,
            self._side.compiler,
            self._side.collectives,
            self._side.flights,
            self._graphs,
            self._earlier,
            mid_step=self._steps.open is not None,
        )
        writer = self.writer
        if modules := self.modules.take(built.modules):
            writer.write("modules", modules)
        self.next_event = built.next_event_id
        stacks, sites, _ = self.dimensions.arrays()
        host = states.rows(self.tracks, stacks, sites, built.ops)
        writer.write("events", built.tables.pop("events"), presorted=True)
        for table, content in built.tables.items():
            writer.write(table, content)
        if host is not None:
            writer.write("host_states", host)
        self._write_workers(built.data_rows, steps, start_ns, end_ns)
        self._written.append((start_ns, end_ns))
        self._write_dimensions()
        return built.events

    def write_rest(self) -> None:
        """What the end of the capture leaves: workers' last rows, dimensions, the program's source."""
        last = self._written[-1][0] if self._written else 0
        self._write_workers([], [], last, last)
        self._side.loaders.dismiss()
        self._write_dimensions()
        if self._settings.sources and (rows := source_rows(self.dimensions.user_files, self.paths)):
            self.writer.write("sources", rows)

    def _write_workers(
        self, data_rows: list[tuple[int, int, int]], steps: list[Step], start_ns: int, end_ns: int
    ) -> None:
        """What DataLoader workers handed over since the last time."""
        pieces, waits = self._side.loaders.take()
        if not pieces and not waits:
            self.loader_rows.know_steps(steps)
            return
        continuous = self._settings.schedule is None
        tables, self.next_event = self.loader_rows.tables(
            pieces,
            waits,
            data_rows,
            steps,
            None if continuous else [*self._written, (start_ns, end_ns)],
            self.dimensions,
            self.tracks,
            self.next_event,
            self.rank,
        )
        for table, content in tables.items():
            self.writer.write(table, content)

    def _write_dimensions(self) -> None:
        writer = self.writer
        if rows := self._steps.rows():
            writer.write("steps", rows)
        if readings := self._side.telemetry.take():
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
