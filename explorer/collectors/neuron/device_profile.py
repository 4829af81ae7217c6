"""A device profile's timeline as events: instructions, DMA blocks, collectives, barriers, throttling, errors."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa

from explorer.collectors.call_stacks import CallStacks
from explorer.collectors.neuron.bulk import BulkWriter, batches, integers, optional
from explorer.collectors.neuron.clock import DeviceClock
from explorer.collectors.neuron.collective_row import collective_row
from explorer.collectors.neuron.event_columns import column, constant, words
from explorer.collectors.neuron.executions import Executions
from explorer.collectors.neuron.flow_lines import FlowLine
from explorer.collectors.neuron.lines import MECHANISMS, Line, LineTable
from explorer.collectors.neuron.tables import ProfileTables
from explorer.collectors.track_table import TrackTable
from explorer.model.ids import module_id
from explorer.model.neuron_engines import ENGINE_OF_NAME, engine_name
from explorer.model.neuron_flow import is_table
from explorer.store.writer import RunWriter

_EDGE_KINDS = {"semaphore": "semaphore", "flow": "data", "output": "data", "anti": "data"}


class DeviceProfile:
    """Maps one device profile into a run.

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
        self.mechanisms: dict[str, Counter[str]] = {}
        self.profile = tables.profile.name
        self.cores = tables.value("SELECT max(pcore_idx) FROM Instruction") or 0

    def write(self) -> int:
        """Write everything; returns the next free event number."""
        self.lines = LineTable(self.tables, self.stacks)
        for mechanism in MECHANISMS:
            self.mechanisms[mechanism] = Counter()
        self.mechanisms["none"] = Counter()
        self._instructions()
        self._dma()
        self._small()
        self._edges()
        return self.next_id

    # -- tracks -----------------------------------------------------------------------------------------------
    def track(self, kind: str, name: str, pcore: int | None) -> int:
        """Track of an engine, queue or stream; the physical core is named where a logical one has several."""
        core = f" (core {pcore})" if pcore is not None and self.cores else ""
        if self.own_tracks:
            core += f" [{self.profile}]"
        return self.tracks.stream(
            "neuron", self.device_index, pcore, f"{name}{core}", kind=kind, process=self.profile
        )

    def _track_map(self, name: str, sql: str, kind: str) -> None:
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

    # -- ids --------------------------------------------------------------------------------------------------
    def _identity(self, table: str) -> str:
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

    def _valid(self, table: str) -> str:
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

    # -- instructions -----------------------------------------------------------------------------------------
    def _instructions(self) -> None:
        if not self.tables.has("Instruction"):
            return
        self._track_map("engine_tracks", "SELECT DISTINCT engine, pcore_idx FROM Instruction", "engine")
        identity = self._identity("Instruction")
        condition = self._valid("Instruction")
        size = self._sum_of("Instruction", "hbm_read_bytes", "hbm_write_bytes")
        flops = "i.raw_flops" if self.tables.has("Instruction", "raw_flops") else "CAST(NULL AS BIGINT)"
        sql = f"""
            SELECT {identity} AS event_id, i.id, t.track_id, i.opcode, i.start_ts,
                   coalesce(i.duration_ns, i.end_ts - i.start_ts) AS duration_ns, {self.lines.expression} AS line,
                   {flops} AS flops, {size} AS size_bytes, {self.lines.layer_of()} AS layer
            FROM Instruction AS i
            JOIN engine_tracks AS t ON t.key IS NOT DISTINCT FROM i.engine AND t.pcore IS NOT DISTINCT FROM i.pcore_idx
            {self.lines.joins}
            WHERE {condition}
        """
        self.counts["instruction"] += batches(
            self.tables.connection, sql, lambda batch: self._instruction_batch(batch)
        )

    def _sum_of(self, table: str, *columns: str) -> str:
        there = [f"i.{column}" for column in columns if self.tables.has(table, column)]
        if not there:
            return "CAST(NULL AS BIGINT)"
        return "nullif(" + " + ".join(f"coalesce({column}, 0)" for column in there) + ", 0)"

    def _instruction_batch(self, batch: pa.RecordBatch) -> None:
        columns = self._common(batch, "instruction", "opcode")
        number = np.asarray(batch.column("line").fill_null(-1))
        number = self._with_executions(number.astype(np.int64), columns["__place"])
        columns |= self._line_columns(columns, number)
        self._count_mechanisms(batch, number)
        columns["correlation_id"] = optional(batch, "id", pa.int64())
        columns["flops"] = optional(batch, "flops", pa.int64())
        columns["size_bytes"] = optional(batch, "size_bytes", pa.int64())
        if batch.column("layer").null_count < batch.num_rows:
            columns["module_id"] = self._modules(batch.column("layer"))
        self.bulk.write("events", columns)

    def _common(self, batch: pa.RecordBatch, category: str, name: str) -> dict[str, Any]:
        count = batch.num_rows
        start = self.clock.to_host(integers(batch, "start_ts"))
        duration = integers(batch, "duration_ns")
        place = self.executions.place(start)
        names = batch.column(name).fill_null("")
        return {
            "event_id": integers(batch, "event_id"),
            "track_id": np.asarray(batch.column("track_id")).astype(np.int32),
            "category": constant(category, count),
            "name": names.dictionary_encode(),
            "start_ns": start,
            "duration_ns": duration,
            # An engine's instructions overlap in its pipeline but do not enclose each other.
            "self_ns": duration,
            "__place": place,
        } | self.executions.columns(place)

    def _line_columns(self, columns: dict[str, Any], number: np.ndarray[Any, Any]) -> dict[str, Any]:
        """Line columns for rows with these line numbers; lines shared by several sites go to event_sites."""
        columns.pop("__place", None)
        table = self.lines.lines
        index = pa.array(number, pa.int64(), mask=number < 0)
        site = pa.array([line.sites[0] if line.sites else None for line in table], pa.int64())
        stack = pa.array([line.stack_id for line in table], pa.int64())
        shared = np.array([len(line.sites) > 1 for line in table] or [False])
        if shared.any():
            rows = np.flatnonzero((number >= 0) & shared[np.maximum(number, 0)])
            self._event_sites(columns["event_id"][rows], number[rows])
        missing = np.where(number < 0, len(table), number)
        return {
            "site_id": site.take(index) if len(table) else pa.nulls(len(number), pa.int64()),
            "stack_id": stack.take(index) if len(table) else pa.nulls(len(number), pa.int64()),
            "attribution": words([line.attribution for line in table] + ["none"], missing),
            "precision": words([line.precision for line in table] + [None], missing),
        }

    def _with_executions(
        self, number: np.ndarray[Any, Any], place: np.ndarray[Any, Any]
    ) -> np.ndarray[Any, Any]:
        """Line numbers where rows without a line of their own take those of the ops that their execution runs."""
        items = self.executions.items
        if not any(item.sites for item in items):
            return number
        lines = [
            FlowLine(
                tuple(site for site, _ in item.sites),
                item.stack_id,
                "execution",
                tuple(share for _, share in item.sites),
            )
            for item in items
        ]
        of_execution = np.array([self.lines.number(line) if line.sites else -1 for line in lines], np.int64)
        bare = np.array([not line.sites for line in self.lines.lines] + [True])[number]
        rows = np.flatnonzero(bare & (place >= 0))
        rows = rows[of_execution[place[rows]] >= 0]
        number[rows] = of_execution[place[rows]]
        return number

    def _event_sites(self, events: np.ndarray[Any, Any], number: np.ndarray[Any, Any]) -> None:
        if not len(events):
            return
        ids, sites, shares = [], [], []
        for line_number in np.unique(number):
            line = self.lines.lines[line_number]
            chosen = events[number == line_number]
            for site, share in zip(line.sites, line.shares):
                ids.append(chosen)
                sites.append(np.full(len(chosen), site, np.int64))
                shares.append(np.full(len(chosen), share))
        count = sum(len(each) for each in ids)
        self.bulk.write(
            "event_sites",
            {
                "event_id": np.concatenate(ids),
                "site_id": np.concatenate(sites),
                "role": constant("responsible", count),
                "share": np.concatenate(shares),
            },
        )

    def _count_mechanisms(self, batch: pa.RecordBatch, number: np.ndarray[Any, Any]) -> None:
        tracks = np.asarray(batch.column("track_id"))
        duration = integers(batch, "duration_ns")
        labels = [line.mechanism for line in self.lines.lines] + ["none"]
        for track in np.unique(tracks):
            chosen = tracks == track
            engine = (self.tracks.rows[track - self.tracks.first].thread_name or "").split(" (")[0]
            sums = np.bincount(
                np.where(number[chosen] < 0, len(labels) - 1, number[chosen]).astype(np.int64),
                weights=duration[chosen].astype(np.float64),
                minlength=len(labels),
            )
            for label, total in zip(labels, sums):
                if total:
                    self.mechanisms.setdefault(label, Counter())[engine] += int(total)

    def _modules(self, layers: pa.Array) -> pa.Array:
        encoded = layers.dictionary_encode()
        ids = []
        for text in encoded.dictionary.to_pylist():
            path = (text or "").strip().strip("/").replace("/", ".")
            self.lines.modules.setdefault(path, text)
            ids.append(module_id(path, "") if path else None)
        return pa.array(ids, pa.int64()).take(encoded.indices)

    # -- DMA --------------------------------------------------------------------------------------------------
    def _dma(self) -> None:
        connection = self.tables.connection
        blocks, packets = self.tables.has("DmaPacketAggregated"), self.tables.has("DmaPacket")
        if blocks:
            self._track_map(
                "queue_tracks",
                "SELECT DISTINCT queue_name || coalesce('.' || queue_idx, ''), pcore_idx FROM DmaPacketAggregated",
                "queue",
            )
            self._dma_lines()
            identity = self._identity("DmaPacketAggregated")
            condition = self._valid("DmaPacketAggregated")
            sql = f"""
                SELECT {identity} AS event_id, i.id, t.track_id,
                       coalesce(nullif(i.op, ''), 'dma') AS name, i.start_ts,
                       coalesce(i.duration_ns, i.end_ts - i.start_ts) AS duration_ns, l.line, i.transfer_bytes AS size_bytes
                FROM DmaPacketAggregated AS i
                JOIN queue_tracks AS t ON t.key IS NOT DISTINCT FROM i.queue_name || coalesce('.' || i.queue_idx, '')
                  AND t.pcore IS NOT DISTINCT FROM i.pcore_idx
                LEFT JOIN dma_lines AS l ON l.id = i.id
                WHERE {condition}
            """
            self.counts["dma"] += batches(connection, sql, self._dma_batch)
        if packets:
            # Packets of dynamic or unknown queues may lack a block: they are events of their own.
            lonely = "packet_aggregation_id NOT IN (SELECT id FROM DmaPacketAggregated)" if blocks else "true"
            connection.execute(
                f"CREATE OR REPLACE TEMP TABLE LonelyPacket AS SELECT * FROM DmaPacket WHERE coalesce({lonely}, true)"
            )
            if self.tables.value("SELECT count(*) FROM LonelyPacket"):
                self._lonely_packets()

    def _lonely_packets(self) -> None:
        name = "coalesce(queue_name, queue_type, 'unknown') || coalesce('.' || queue_idx, '')"
        self._track_map("packet_tracks", f"SELECT DISTINCT {name}, pcore_idx FROM LonelyPacket", "queue")
        identity = self._identity("LonelyPacket")
        self.offsets.pop("LonelyPacket", None)
        condition = self._valid("LonelyPacket")
        sql = f"""
            SELECT {identity} AS event_id, i.id, t.track_id, 'dma_packet' AS name, start_ts,
                   coalesce(duration_ns, end_ts - start_ts) AS duration_ns, CAST(NULL AS INTEGER) AS line,
                   transfer_bytes AS size_bytes
            FROM LonelyPacket AS i
            JOIN packet_tracks AS t ON t.key IS NOT DISTINCT FROM {name} AND t.pcore IS NOT DISTINCT FROM i.pcore_idx
            WHERE {condition}
        """
        self.counts["dma"] += batches(self.tables.connection, sql, self._dma_batch)

    def _dma_batch(self, batch: pa.RecordBatch) -> None:
        columns = self._common(batch, "dma", "name")
        number = np.asarray(batch.column("line").fill_null(-1)).astype(np.int64)
        columns |= self._line_columns(columns, self._with_executions(number, columns["__place"]))
        columns["correlation_id"] = optional(batch, "id", pa.int64())
        columns["size_bytes"] = optional(batch, "size_bytes", pa.int64())
        self.bulk.write("events", columns)

    def _dma_lines(self) -> None:
        """dma_lines(id, line): a transfer's line is that of the instructions it feeds or drains (table Flow)."""
        connection = self.tables.connection
        empty = pa.table({"id": pa.array([], pa.int64()), "line": pa.array([], pa.int32())})
        if not self.tables.has("Flow") or not self.tables.has("Instruction"):
            connection.register("dma_lines", empty)
            return
        line = self.lines.expression
        connection.execute(
            f"""
            CREATE OR REPLACE TEMP TABLE dma_sets AS
            WITH touched AS (
                SELECT out_id AS id, in_id AS instruction FROM Flow
                WHERE {is_table("in_table", "Instruction")} AND {is_table("out_table", "DmaPacketAggregated")}
                UNION
                SELECT in_id, out_id FROM Flow
                WHERE {is_table("out_table", "Instruction")} AND {is_table("in_table", "DmaPacketAggregated")})
            SELECT touched.id, CAST(list_sort(list(DISTINCT {line})) AS VARCHAR) AS set
            FROM touched JOIN Instruction AS i ON i.id = touched.instruction {self.lines.joins}
            WHERE {line} IS NOT NULL
            GROUP BY touched.id
            """
        )
        sets, numbers = [], []
        for (text,) in connection.execute("SELECT DISTINCT set FROM dma_sets").fetchall():
            lines = [self.lines.lines[number] for number in json.loads(text)]
            sites = tuple(dict.fromkeys(site for each in lines for site in each.sites))
            if sites:
                sets.append(text)
                numbers.append(self.lines.number(FlowLine(sites, lines[0].stack_id, "flow")))
        table = pa.table({"set": pa.array(sets, pa.string()), "line": pa.array(numbers, pa.int32())})
        connection.register("dma_set_lines", table)
        connection.execute(
            "CREATE OR REPLACE TEMP VIEW dma_lines AS SELECT id, line FROM dma_sets JOIN dma_set_lines USING (set)"
        )

    # -- small tables -----------------------------------------------------------------------------------------
    def _small(self) -> None:
        events: list[dict[str, Any]] = []
        collectives: list[dict[str, Any]] = []
        triggers = self._trigger_lines()
        for row in self.tables.rows(
            "SELECT *, row_number() OVER (ORDER BY start_ts, op_id) AS place FROM CcOp ORDER BY place"
        ):
            line = triggers.get(row.pop("place"))
            name = f"collectives {row['stream_id']}" if row["stream_id"] is not None else "collectives"
            event = self._event(row, "CcOp", "collective", row["operation"] or "collective", ("stream", name))
            if event:
                if line is not None:
                    event |= {"site_id": line.sites[0], "stack_id": line.stack_id}
                    event |= {"attribution": "flow", "precision": "inferred"}
                events.append(event)
                collectives.append(collective_row(event["event_id"], row))
        for row in self.tables.rows("SELECT * FROM CcInstruction ORDER BY start_ts"):
            # Steps of a collective on its own core: shown beside it, not counted as work twice.
            track = ("stream", f"collective core {row['core_idx']}")
            if event := self._event(row, "CcInstruction", "other", row["description"] or "step", track):
                events.append(event)
        for row in self.tables.rows("SELECT * FROM CoreBarriers ORDER BY start_ts"):
            track = ("engine", f"{engine_name(row['engine_name'] or '')} barriers")
            if event := self._event(row, "CoreBarriers", "semaphore", "core barrier", track):
                events.append(event)
        for row in self.tables.rows("SELECT * FROM Throttle ORDER BY timestamp"):
            row |= {"start_ts": row.pop("timestamp"), "duration_ns": row.pop("duration"), "end_ts": None}
            name = f"throttle {row['type'] or ''}".strip()
            if event := self._event(row, "Throttle", "other", name, ("stream", "throttling")):
                events.append(event)
        for row in self.tables.rows("SELECT * FROM Error ORDER BY timestamp"):
            row |= {"start_ts": row.pop("timestamp"), "duration_ns": 0, "end_ts": None}
            name = row["description"] or "error"
            if event := self._event(row, "Error", "other", name, ("stream", "errors")):
                events.append(event)
        if events:
            self.bulk.write("events", {name: column(name, events) for name in events[0]})
        if collectives:
            self.writer.write("collectives", collectives)

    def _event(
        self, row: dict[str, Any], table: str, category: str, name: str, track: tuple[str, str]
    ) -> dict[str, Any] | None:
        start, duration = row["start_ts"], row["duration_ns"]
        if duration is None and start is not None and row["end_ts"] is not None:
            duration = row["end_ts"] - start
        if start is None or duration is None or duration < 0:
            reason = "negative_duration" if duration is not None and duration < 0 else "no_time"
            self.writer.quarantine({"table": table, "profile": self.profile} | row, reason)
            self.counts["quarantined"] += 1
            return None
        host = self.clock.to_host(np.array([start], np.int64))
        place = self.executions.place(host)[0]
        execution = self.executions.items[place] if place >= 0 else None
        number = self.next_id
        self.next_id += 1
        self.counts[category] += 1
        rest = {
            k: v for k, v in row.items() if v is not None and k not in ("start_ts", "end_ts", "duration_ns")
        }
        return {
            "event_id": number,
            "track_id": self.track(track[0], track[1], row.get("pcore_idx")),
            "category": category,
            "name": name,
            "start_ns": int(host[0]),
            "duration_ns": duration,
            "self_ns": duration,
            "correlation_id": row.get("op_id") if table == "CcOp" else row.get("id"),
            "launch_id": execution.launch_id if execution else None,
            "op_id": execution.op_ids[0] if execution and execution.op_ids else None,
            "step": execution.step if execution else None,
            "site_id": None,
            "stack_id": None,
            "attribution": "none" if category == "collective" else None,
            "precision": None,
            "size_bytes": row.get("input_size"),
            "attributes": json.dumps({"table": table} | rest, default=str),
        }

    def _trigger_lines(self) -> dict[int, Line]:
        """Lines of collectives by their place in time: that of the instruction that triggered each on its engine."""
        if not (self.tables.has("CcOp", "trigger_start_ts") and self.tables.has("Instruction")):
            return {}
        aliases = pa.table({"alias": list(ENGINE_OF_NAME), "name": list(ENGINE_OF_NAME.values())})
        self.tables.connection.register("engine_aliases", aliases)
        self.tables.connection.execute(
            """
            CREATE OR REPLACE TEMP TABLE trigger_hits AS
            WITH ops AS (
                SELECT row_number() OVER (ORDER BY start_ts, op_id) AS place, trigger_start_ts, a.name AS engine
                FROM CcOp LEFT JOIN engine_aliases AS a ON a.alias = lower(trigger_engine))
            SELECT ops.place, i.* FROM ops JOIN Instruction AS i
              ON ops.trigger_start_ts >= i.start_ts AND ops.trigger_start_ts <= i.end_ts AND i.engine = ops.engine
            """
        )
        rows = self.tables.connection.execute(
            f"""
            SELECT i.place, arg_max({self.lines.expression}, i.start_ts) FROM trigger_hits AS i {self.lines.joins}
            WHERE {self.lines.expression} IS NOT NULL GROUP BY i.place
            """
        ).fetchall()
        return {place: self.lines.lines[number] for place, number in rows if self.lines.lines[number].sites}

    # -- edges ------------------------------------------------------------------------------------------------
    def _edges(self) -> None:
        """Table Flow between rows that became events."""
        if not self.tables.has("Flow"):
            return
        cases = {}
        for side in ("in", "out"):
            whens = " ".join(
                f"WHEN {is_table(f'{side}_table', table)} THEN {side}_id + ({offset})"
                for table, offset in self.offsets.items()
            )
            cases[side] = f"CASE {whens} END" if whens else "CAST(NULL AS BIGINT)"
        sql = f"""
            SELECT source, target, kind FROM (
                SELECT {cases["in"]} AS source, {cases["out"]} AS target, lower(coalesce(dependency_type, 'flow')) AS kind
                FROM Flow) WHERE source IS NOT NULL AND target IS NOT NULL
        """

        def work(batch: pa.RecordBatch) -> None:
            kinds = batch.column("kind").dictionary_encode()
            named = [
                _EDGE_KINDS.get(text, "semaphore" if "sem" in text else "data")
                for text in kinds.dictionary.to_pylist()
            ]
            self.bulk.write(
                "edges",
                {
                    "source_id": integers(batch, "source"),
                    "target_rank": np.full(batch.num_rows, self.writer.rank, np.int32),
                    "target_id": integers(batch, "target"),
                    "kind": pa.DictionaryArray.from_arrays(kinds.indices, pa.array(named, pa.string())),
                },
            )

        written = batches(self.tables.connection, sql, work)
        total = self.tables.sources["Flow"].rows
        self.counts["flow"] += written
        if written < total:
            self.writer.health(
                "neuron_unresolved_flows",
                "info",
                total - written,
                f"Dependencies of profile {self.profile} name tables that hold no events; they stay in neuron.Flow.",
                affects="edges",
            )
