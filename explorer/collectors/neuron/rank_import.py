"""Imports one rank of a Neuron session: system events, clocks, device profiles, official tables, counters, health."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from explorer.collectors.call_stacks import CallStacks
from explorer.collectors.neuron import system_profile
from explorer.collectors.neuron.bulk import BulkWriter
from explorer.collectors.neuron.clock import EPOCH_NS, DeviceClock, from_pairing, from_sync_points
from explorer.collectors.neuron.counters import write_device_counters, write_system_counters
from explorer.collectors.neuron.device_profile import DeviceProfile
from explorer.collectors.neuron.device_row import device_row
from explorer.collectors.neuron.executions import Execution, Executions
from explorer.collectors.neuron.host_match import OwnEvents
from explorer.collectors.neuron.official import EVENT_OFFSETS, copy_tables, describe_tables
from explorer.collectors.neuron.official_rows import keep_process_rows
from explorer.collectors.neuron.percent import FRACTION, UNKNOWN, percent_kind
from explorer.collectors.neuron.ranks import DevicePlan, RankPlan
from explorer.collectors.neuron.schema_health import report_schema
from explorer.collectors.neuron.tables import ProfileTables
from explorer.collectors.track_table import TrackTable
from explorer.model.ids import module_id
from explorer.store.writer import RunWriter

NKI_COVERAGE = 0.5
"""Part of the instruction time with NKI source below which it is said (AWS Neuron Explorer's summary page: insight below 50 %)."""


class RankImport:
    """One rank's import. `run` does it and returns the number of events.

    Args:
        root: folder that source paths are written relative to.
        first_event, first_track: free numbers, where a capture has already written events of this rank.
        own: that capture's ops; the system profile's framework rows that are the same are not written twice.
    """

    def __init__(
        self,
        plan: RankPlan,
        writer: RunWriter,
        root: str = "",
        *,
        first_event: int = 0,
        first_track: int = 0,
        own: OwnEvents | None = None,
    ) -> None:
        self.plan = plan
        self.writer = writer
        self.bulk = BulkWriter(writer)
        self.tracks = TrackTable(first_track)
        self.stacks = CallStacks(root)
        self.next_id = self.first_event = first_event
        self.own = own
        self.counts: Counter[str] = Counter()
        self.official: Counter[str] = Counter()
        self.profiles: list[dict[str, Any]] = []
        self.offsets: list[dict[str, Any]] = []
        self.modules: dict[str, str] = {}
        self.events: system_profile.SystemEvents | None = None
        self.linked: system_profile.Linked | None = None
        self.sync: dict[int, list[tuple[int, int]]] = {}
        self.clocks: dict[int, DeviceClock] = {}

    def run(self) -> int:
        """Import everything. Raises what reading or writing raises; parts are published by the writer alone."""
        try:
            self._system()
            for device in self.plan.devices:
                self._device(device)
            self.bulk.finish()
        finally:
            self.bulk.close()
        self.tracks.write(self.writer)
        self.stacks.write(self.writer)
        self._modules()
        if self.offsets:
            self.writer.write(EVENT_OFFSETS, self.offsets)
        events, counters = self.bulk.rows.get("events", 0), self.bulk.rows.get("counters", 0)
        official = sum(self.official.values())
        # Every source row is kept as an official row; events, values and quarantined rows are made from those.
        for name, rows in (
            ("source_total", official),
            ("official_rows", official),
            ("derived", events + counters + self.counts["quarantined"]),
            ("events", events),
            ("counters", counters),
            ("quarantine", self.counts["quarantined"]),
        ):
            self.writer.manifest.counts[name] = self.writer.manifest.counts.get(name, 0) + rows
        self.writer.manifest.attributes["neuron"] = {
            "profiles": self.profiles,
            "rank_from": self.plan.how,
            "rows": dict(sorted(self.official.items())),
            "events": {name: rows for name, rows in sorted(self.counts.items()) if name != "quarantined"},
            "system": self.events is not None and len(self.events) > 0,
        }
        return self.bulk.rows.get("events", 0)

    # -- system -----------------------------------------------------------------------------------------------
    def _system(self) -> None:
        tables = self.plan.system
        if tables is None:
            return
        events = system_profile.read_events(
            tables, self.plan.instance, self.plan.process, self.tracks, self.own
        )
        for row in events.quarantined:
            self.writer.quarantine({"table": "SystemProfileEvents"} | row, "impossible_time")
        self.counts["quarantined"] += len(events.quarantined)
        linked = system_profile.link(events, self.stacks, self.first_event, self.own)
        self.events, self.linked = events, linked
        self.sync = system_profile.sync_points(events)
        written = system_profile.write_events(events, linked, self.bulk, self.writer.rank, self._profiled())
        self.next_id = self.first_event + len(events)
        self.counts["system"] += written
        if self.own is not None and len(events):
            self._report_match(len(events) - written)
        if linked.steps and self.own is None:
            number, start, end = zip(*linked.steps)
            spans = [last - first for first, last in zip(start, end)]
            self.writer.write(
                "steps",
                {
                    "step": number,
                    "start_ns": start,
                    "duration_ns": spans,
                    "complete": [True] * len(number),
                    "phase": [linked.phases.get(each) for each in number],
                },
            )
        write_system_counters(tables, self.bulk, self.tracks, self.plan.instance or "")
        self._keep(tables, {})

    def _report_match(self, matched: int) -> None:
        events = self.events
        assert events is not None
        ops = sum(
            1
            for source, kind in zip(events.sources, events.categories)
            if source == "framework" and kind == "op"
        )
        if ops and matched < ops:
            self.writer.health(
                "neuron_ops_unmatched",
                "info",
                ops - matched,
                f"{ops - matched} of {ops} framework ops of the system profile are none of the recorded ops by thread, name and time; they are kept beside them.",
                affects="launches",
            )

    # -- devices ----------------------------------------------------------------------------------------------
    def _device(self, device: DevicePlan) -> None:
        tables = device.tables
        core = device.device_index
        clock = self._clock(tables, core)
        summary = (tables.rows("SELECT * FROM Summary LIMIT 1") or [{}])[0]
        kind = percent_kind(summary)
        profile = DeviceProfile(
            tables,
            self.writer,
            self.bulk,
            self.tracks,
            self.stacks,
            device_index=core,
            first_id=self.next_id,
            clock=clock,
            executions=self._executions(tables, core, clock),
            own_tracks=clock.method == "none" and len(self.plan.devices) > 1,
        )
        self.next_id = profile.write()
        self.counts.update(profile.counts)
        self.modules.update(profile.lines.modules)
        write_device_counters(tables, self.bulk, self.tracks, clock, core, kind == FRACTION)
        self.writer.write("devices", [device_row(tables, core)])
        first = tables.value("SELECT first_hw_timestamp FROM Metadata LIMIT 1") or 0
        shift = int(clock.to_host(np.array([first], np.int64))[0]) - first
        for table, offset in {"": 0, **profile.offsets}.items():
            self.offsets.append(
                {
                    "profile": tables.profile.name,
                    "table_name": table,
                    "id_offset": offset,
                    "device_index": core,
                    "clock_offset_ns": shift,
                }
            )
        self._report(tables, profile, clock, kind)
        self._keep(
            tables,
            {
                "device_index": core,
                "clock": {"method": clock.method, "residual_ns": clock.residual_ns, "offset_ns": shift},
                "percent_columns": kind,
                "line_time_ns": {name: dict(found) for name, found in profile.mechanisms.items() if found},
            },
        )

    def _profiled(self) -> dict[int, list[tuple[int, int]]]:
        """Host-time windows that device profiles cover, by core."""
        windows: dict[int, list[tuple[int, int]]] = {}
        for device in self.plan.devices:
            if not device.tables.has("Instruction"):
                continue
            clock = self._clock(device.tables, device.device_index)
            spans = (
                _execution_windows(device.tables)
                or device.tables.connection.execute(
                    "SELECT min(start_ts), max(end_ts) FROM Instruction"
                ).fetchall()
            )
            for start, end in spans:
                moved = clock.to_host(np.array([start, end], np.int64))
                windows.setdefault(device.device_index, []).append((int(moved[0]), int(moved[1])))
        return windows

    def _clock(self, tables: ProfileTables, core: int) -> DeviceClock:
        known = self.clocks.get(id(tables))
        if known is None:
            known = self.clocks[id(tables)] = self._find_clock(tables, core)
        return known

    def _find_clock(self, tables: ProfileTables, core: int) -> DeviceClock:
        first = tables.value("SELECT min(start_ts) FROM Instruction")
        if first is None or first >= EPOCH_NS:
            return DeviceClock()
        if self.sync.get(core):
            return from_sync_points(self.sync[core])
        executions = [(start, end - start) for start, end in _execution_windows(tables)]
        clock = from_pairing(executions, self._running(core))
        if clock.method == "none" and self.events is not None and len(self.events):
            # Without any relation the device's start is laid on its first execution (else on the first host event),
            # so that the run spans seconds and not decades; the health row says that this is a guess.
            running = self._running(core)
            host = running[0][0] if running else int(self.events.start[0])
            clock = DeviceClock((int(first),), (host - int(first),), "first_event", 0)
        return clock

    def _running(self, core: int) -> list[tuple[int, int]]:
        events = self.events
        if events is None:
            return []
        return [
            (int(events.start[place]), int(events.duration[place]))
            for place, name in enumerate(events.names)
            if name == system_profile.EXECUTION and (events.core[place] or 0) == core
        ]

    def _executions(self, tables: ProfileTables, core: int, clock: DeviceClock) -> Executions:
        """Executions of a profile: its own windows, each with what the overlapping system execution knows."""
        if self.events is None or self.linked is None or clock.method == "none":
            return Executions()
        known = system_profile.execution_list(self.events, self.linked, core)
        rows = _execution_windows(tables)
        if not rows:
            return Executions(known)
        items = []
        for start, end in rows:
            first, last = (int(t) for t in clock.to_host(np.array([start, end], np.int64)))
            best = max(
                known, key=lambda item: min(last, item.end_ns) - max(first, item.start_ns), default=None
            )
            if best is None or min(last, best.end_ns) <= max(first, best.start_ns):
                items.append(Execution(first, last))
                continue
            items.append(
                Execution(first, last, best.launch_id, best.op_ids, best.step, best.sites, best.stack_id)
            )
        return Executions(items)

    # -- what is kept and said --------------------------------------------------------------------------------
    def _keep(self, tables: ProfileTables, facts: dict[str, Any]) -> None:
        if any(each["name"] == tables.profile.name for each in self.profiles):
            return
        if tables is self.plan.system and self.plan.sharers:
            own = (self.plan.instance, self.plan.process)
            kept = keep_process_rows(self.writer, tables, own, self.plan.sharers)
        else:
            kept = copy_tables(self.writer, tables)
        self.official.update(kept)
        columns = describe_tables(tables)
        self.profiles.append(
            {"name": tables.profile.name, "schema_version": tables.version, "columns": columns} | facts
        )
        report_schema(tables, self.writer)

    def _report(self, tables: ProfileTables, profile: DeviceProfile, clock: DeviceClock, kind: str) -> None:
        name = tables.profile.name
        if self.events is not None and len(self.events) and clock.method in ("first_event", "none"):
            self.writer.health(
                "neuron_clock_unjoined",
                "warning",
                1,
                f"Profile {name} has no sync point and no execution that pairs with the system profile: its place in time is a guess.",
                "Capture system and device profile together, with timestamp_sync_point events on.",
                "gaps,launches,breakdown",
            )
        elif clock.method == "pairing":
            fits = (
                f"; {clock.alignments} alignments fit, the steadiest was taken"
                if clock.alignments > 1
                else ""
            )
            self.writer.health(
                "neuron_clock_paired",
                "warning" if clock.alignments > 1 else "info",
                clock.residual_ns,
                f"Without sync points, the clock of profile {name} was joined by pairing executions of equal duration; offsets differ by up to {clock.residual_ns} ns{fits}.",
                "Capture timestamp_sync_point events.",
                "launches",
            )
        elif clock.residual_ns:
            self.writer.health(
                "neuron_clock_residual",
                "info",
                clock.residual_ns,
                f"Sync points of profile {name} differ by up to {clock.residual_ns} ns from their median; times between them are interpolated.",
                affects="launches",
            )
        if kind == UNKNOWN and "Summary" in tables.sources:
            self.writer.health(
                "neuron_percent_unknown",
                "info",
                1,
                f"Nothing in profile {name} tells whether its percent columns hold fractions or percent; series are kept as they are.",
            )
        total = sum(sum(found.values()) for found in profile.mechanisms.values())
        bare = profile.mechanisms.get("none", Counter()) + profile.mechanisms.get("layer", Counter())
        if total and bare:
            listed = ", ".join(f"{engine} {bare[engine] / total:.1%}" for engine in sorted(bare))
            self.writer.health(
                "neuron_unattributed",
                "warning" if sum(bare.values()) > 0.2 * total else "info",
                sum(bare.values()),
                f"{sum(bare.values()) / total:.1%} of the instruction time of profile {name} has no source line (share of all time by engine: {listed}).",
                "Compile with XLA_IR_DEBUG=1 XLA_HLO_DEBUG=1 NEURON_FRAMEWORK_DEBUG=1 (kernels: NKI_DEBUG_INFO=1) and record again.",
                "lines",
            )
        self._report_kernels(tables, profile, total)
        for row in tables.rows(
            "SELECT category, message, count(*) AS n FROM Warning GROUP BY ALL ORDER BY ALL"
        ):
            self.writer.health(
                "neuron_warning",
                "warning",
                row["n"],
                f"The profiler warns ({row['category'] or 'general'}): {row['message']}.",
            )
        for row in tables.rows(
            "SELECT CAST(type AS VARCHAR) AS type, description, count(*) AS n FROM Error GROUP BY ALL ORDER BY ALL"
        ):
            self.writer.health(
                "neuron_device_error",
                "error" if row["type"] == "Errors" else "warning",
                row["n"],
                f"The device reported ({row['type']}): {row['description']}.",
            )

    def _report_kernels(self, tables: ProfileTables, profile: DeviceProfile, total: int) -> None:
        """Under half with kernel source is worth knowing where a profile has kernels at all (AWS's summary page says so)."""
        if not total or not tables.has("KernelInstructions"):
            return
        known = sum(
            sum(profile.mechanisms.get(name, Counter()).values()) for name in ("kernel", "nki_location")
        )
        if known / total < NKI_COVERAGE:
            self.writer.health(
                "neuron_nki_coverage",
                "info",
                known,
                f"{known / total:.1%} of the instruction time of profile {tables.profile.name} has NKI source; the rest is compiled from the framework.",
                "Compile kernels with NKI_DEBUG_INFO=1 if more of it should be theirs.",
                "neuron_iterations",
            )

    def _modules(self) -> None:
        if self.modules:
            self.writer.write(
                "modules",
                [
                    {"module_id": module_id(path, ""), "path": path, "class_name": ""}
                    for path in self.modules
                    if path
                ],
            )


def _execution_windows(tables: ProfileTables) -> list[tuple[int, int]]:
    """Executions on the device's clock, in time order."""
    return tables.connection.execute(
        "SELECT execution_start_ts, execution_end_ts FROM ExecutionInfo"
        " WHERE execution_start_ts IS NOT NULL AND execution_end_ts >= execution_start_ts ORDER BY 1, 2"
    ).fetchall()
