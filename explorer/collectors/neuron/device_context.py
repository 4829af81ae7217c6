"""What the writers of one device profile share: its tables, numbering of events and tracks, what was counted."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa

from explorer.collectors.call_stacks import CallStacks
from explorer.collectors.neuron.bulk import BulkWriter
from explorer.collectors.neuron.clock import DeviceClock
from explorer.collectors.neuron.executions import Executions
from explorer.collectors.neuron.lines import MECHANISMS, LineTable
from explorer.collectors.neuron.tables import ProfileTables
from explorer.collectors.track_table import TrackTable
from explorer.model.neuron_engines import engine_name
from explorer.store.writer import RunWriter


class DeviceContext:
    """One device profile on its way into a run.

    Event ids of instructions are `id + offset` of the official table (offsets are in the manifest), so both sides join
    without a map; where ids repeat in a table, its rows are numbered in order and `correlation_id` holds the id.

    Args:
        device_index: number of the logical core in its process.
        first_id: first free event number of the rank.
        own_tracks: give this profile's tracks its name: its clock cannot be compared with the others'.
    """

    def __init__(
        self,
        tables: ProfileTables,
        writer: RunWriter,
        bulk: BulkWriter,
        tracks: TrackTable,
        stacks: CallStacks,
        *,
        device_index: int,
        first_id: int,
        clock: DeviceClock,
        executions: Executions,
        own_tracks: bool = False,
    ) -> None:
        self.tables = tables
        self.writer = writer
        self.bulk = bulk
        self.tracks = tracks
        self.stacks = stacks
        self.device_index = device_index
        self.next_id = first_id
        self.clock = clock
        self.executions = executions
        self.own_tracks = own_tracks
        self.offsets: dict[str, int] = {}
        self.counts: Counter[str] = Counter()
        self.lines = LineTable(tables, stacks)
        self.mechanisms: dict[str, Counter[str]] = {name: Counter() for name in (*MECHANISMS, "none")}
        """Instruction time in ns by how its line is known, then by engine"""
        self.profile = tables.profile.name
        self.cores = tables.value("SELECT max(pcore_idx) FROM Instruction") or 0

    def track(self, kind: str, name: str, pcore: int | None) -> int:
        """Track of an engine, queue or stream; the physical core is named where a logical one has several."""
        core = f" (core {pcore})" if pcore is not None and self.cores else ""
        if self.own_tracks:
            core += f" [{self.profile}]"
        return self.tracks.stream(
            "neuron", self.device_index, pcore, f"{name}{core}", kind=kind, process=self.profile
        )

    def track_map(self, name: str, sql: str, kind: str) -> None:
        """Register table `name`(key, pcore, track_id) for distinct (key, pcore) rows of a query."""
        rows = self.tables.connection.execute(sql).fetchall()
        keys, cores, numbers = [], [], []
        for key, pcore in sorted(rows, key=lambda row: (row[1] or 0, str(row[0]))):
            shown = engine_name(key or "unknown") if kind == "engine" else str(key or "unknown")
            keys.append(key)
            cores.append(pcore)
            numbers.append(self.track(kind, shown, pcore))
        self.tables.connection.register(
            name,
            pa.table(
                {
                    "key": pa.array(keys, pa.string()),
                    "pcore": pa.array(cores, pa.int64()),
                    "track_id": pa.array(numbers, pa.int32()),
                }
            ),
        )

    def identity(self, table: str) -> str:
        """SQL for the event number of a row of `table`, and room for all of them in the numbering."""
        low, high, distinct, rows = self.tables.connection.execute(
            f"SELECT min(id), max(id), count(DISTINCT id), count(*) FROM {table}"
        ).fetchall()[0]
        if low is not None and distinct == rows and high - low < 2**48:
            offset = self.next_id - low
            self.next_id += high - low + 1
            self.offsets[table] = offset
            return f"i.id + ({offset})"
        first = self.next_id
        self.next_id += rows
        if rows:
            self.writer.health(
                "neuron_repeated_ids",
                "warning",
                rows - distinct,
                f"Ids of table {table} repeat or are missing in profile {self.profile}, so its dependencies cannot be resolved.",
                affects="edges",
            )
        return f"row_number() OVER () - 1 + {first}"

    def valid(self, table: str) -> str:
        """SQL condition for rows that can be events; the others go to quarantine."""
        duration = "coalesce(duration_ns, end_ts - start_ts)"
        condition = f"start_ts IS NOT NULL AND coalesce({duration} >= 0, false)"
        bad = self.tables.rows(
            f"SELECT *, {duration} AS effective FROM {table} WHERE NOT coalesce({condition}, false) LIMIT 10000"
        )
        for row in bad:
            reason = (
                "no_time" if row["start_ts"] is None or row.pop("effective") is None else "negative_duration"
            )
            row.pop("effective", None)
            self.writer.quarantine({"table": table, "profile": self.profile} | row, reason)
        total = (
            self.tables.value(f"SELECT count(*) FROM {table} WHERE NOT coalesce({condition}, false)")
            if bad
            else 0
        )
        if total:
            self.counts["quarantined"] += int(total)
            self.writer.health(
                "neuron_impossible_times",
                "warning",
                int(total),
                f"Rows of table {table} in profile {self.profile} have no time or a negative duration.",
                affects="engines,breakdown",
            )
        return condition
