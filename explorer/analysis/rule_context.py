"""What a rule sees of a run: the steps it speaks about, the main thread, and evidence made from SQL."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from explorer.analysis.contention import Contention, contention
from explorer.analysis.engine import Engine, literal
from explorer.analysis.phrase import fill
from explorer.analysis.rule import Rule
from explorer.analysis.step_scope import StepScope
from explorer.model.finding import Evidence

EVENTS_SHOWN = 5

_ORDERED = re.compile(r"(?i)\border by\b[^()]*$")


@dataclass
class RuleContext:
    """Args: engine: the scope's rank, trusted; scope: rank and steps that all numbers refer to; overrides: settings by
    '<rule>.<setting>'; job: all ranks of the run, for rules that compare them (None: the same engine)."""

    engine: Engine
    scope: StepScope
    overrides: Mapping[str, float] = field(default_factory=dict)
    shared: dict[str, Any] = field(default_factory=dict)
    """What several rules need and one of them has already made, by name."""
    job: Engine | None = None
    _examples: dict[str, tuple[Engine, str]] = field(default_factory=dict)
    """SQL for example events, and the engine that answers it, by the SQL of the evidence they belong to"""

    @property
    def of_job(self) -> RuleContext:
        """The same with all ranks of the run under `engine`: what it asks of events it asks of every rank."""
        return self if self.job is None else replace(self, engine=self.job, shared={}, job=None)

    def setting(self, rule: Rule, name: str) -> float:
        """The value of a rule's setting. Raises KeyError for a name the rule does not define."""
        for setting in rule.settings:
            if setting.name == name:
                return float(self.overrides.get(f"{rule.name}.{name}", setting.default))
        raise KeyError(f"rule {rule.name} has no setting {name}")

    def rows(self, sql: str) -> list[dict[str, Any]]:
        """Rows of a trusted query."""
        return self.engine.sql(sql).rows()

    def row(self, sql: str) -> dict[str, Any]:
        """The only row of a query that returns one; its integer-valued HUGEINT and DECIMAL sums become int."""
        found = self.rows(sql)
        return {name: _plain(value) for name, value in found[0].items()} if found else {}

    def evidence(self, statement: str, sql: str, events: str = "") -> tuple[Evidence, dict[str, Any]]:
        """A statement filled with the row that `sql` returns. `events` is SQL returning event_id of examples, and their rank
        where it is not the scope's: they are looked up (`with_examples`) only for what becomes a finding."""
        if events and sql.count(f"({events})") > 1:
            self.engine.keep(events)
        row = self.row(sql)
        if events:
            self._examples[sql] = (self.engine, events)
        return Evidence(fill(statement, row), sql), row

    def with_examples(self, evidence: Evidence) -> Evidence:
        """The evidence with its first EVENTS_SHOWN example events: in the order its rule gives them, else by their id."""
        if evidence.events or evidence.sql not in self._examples:
            return evidence
        engine, events = self._examples[evidence.sql]
        order = "" if _ORDERED.search(events) else " ORDER BY event_id"
        found = engine.sql(f"SELECT * FROM ({events}){order} LIMIT {EVENTS_SHOWN}").rows()
        return replace(
            evidence,
            events=tuple(f"{item.get('rank', self.scope.rank)}:{item['event_id']}" for item in found),
        )

    def costliest_lines(self, source: str, *, most: int = 3, steps: int | None = None) -> dict[int, int]:
        """Time per step by line, most first, of SQL for rows (site_id, duration_ns). `steps`: what sums are divided by; None:
        the steps in scope."""
        found = self.rows(
            f"""SELECT site_id, (sum(duration_ns) / {self.count if steps is None else steps})::BIGINT AS time_ns FROM ({source})
            WHERE site_id IS NOT NULL GROUP BY site_id ORDER BY time_ns DESC, site_id LIMIT {most}"""
        )
        return {item["site_id"]: item["time_ns"] for item in found}

    def where(self, alias: str = "e") -> str:
        """SQL condition: the row belongs to the steps in scope (tables with rank and step)."""
        return self.scope.where(alias)

    @property
    def count(self) -> int:
        """Steps in scope: what sums are divided by."""
        return self.scope.count

    @cached_property
    def main_track(self) -> int:
        """The host thread that runs most: by time of ops and states, workers of DataLoaders aside; -1 when there is none."""
        found = self.rows(
            f"""SELECT track_id, sum(work_ns) AS work_ns FROM (
              SELECT track_id, greatest(op_ns, host_ns) AS work_ns FROM line_steps l WHERE {self.where("l")}
              UNION ALL SELECT e.track_id, e.duration_ns FROM events e JOIN tracks t USING (rank, track_id)
              WHERE {self.where()} AND t.kind = 'thread' AND e.parent_id IS NULL AND e.category IN ('runtime', 'sync')
            ) WHERE track_id NOT IN (SELECT track_id FROM tracks WHERE rank = {self.scope.rank}
              AND starts_with(coalesce(process_name, ''), 'DataLoader worker'))
            GROUP BY track_id ORDER BY work_ns DESC, track_id LIMIT 1"""
        )
        return int(found[0]["track_id"]) if found else -1

    @cached_property
    def codes(self) -> dict[int, dict[str, Any]]:
        """Every site of the run by id."""
        return {row["site_id"]: row for row in self.of_job.rows("SELECT * FROM sites")}

    def code(self, site_id: int | None) -> str:
        """Source text of a line, or empty."""
        row = self.codes.get(site_id or 0)
        return str(row["code"] or "") if row else ""

    def place(self, site_id: int | None) -> str:
        """'train.py:57', or 'an unknown line'."""
        row = self.codes.get(site_id or 0)
        return f"{row['file']}:{row['line']}" if row else "an unknown line"

    def is_user(self, site_id: int | None) -> bool:
        row = self.codes.get(site_id or 0)
        return bool(row and row["is_user"])

    @cached_property
    def kinds(self) -> str:
        """SQL, answered once, for what events the scope's rank holds: category, name, phase, track_id, and how many there are
        of these in the steps in scope (events) and in all (all_events), with shapes and dtypes those that know them."""
        here = f"FILTER (WHERE {self.where()})"
        return self.engine.keep(
            f"""SELECT e.category, e.name, e.phase, e.track_id, count(*) {here} AS events, count(*) AS all_events,
              count(e.shapes) {here} AS shapes, count(e.dtypes) {here} AS dtypes
            FROM events e WHERE e.rank = {self.scope.rank} GROUP BY ALL"""
        )

    def holds(self, condition: str) -> bool:
        """Whether any event meets a condition on `kinds`: by asking before a rule spares runs without such events its queries."""
        return bool(self.rows(f"SELECT 1 FROM ({self.kinds}) WHERE {condition} LIMIT 1"))

    @cached_property
    def has(self) -> frozenset[str]:
        """Which of NEEDS this run's scope can serve."""
        row = self.row(
            f"""SELECT sum(events) AS events,
              sum(events) FILTER (WHERE e.category = 'op') AS ops,
              sum(events) FILTER (WHERE t.kind <> 'thread' AND t.kind <> 'counter') AS device,
              sum(events) FILTER (WHERE e.category = 'kernel') AS kernels,
              sum(shapes) AS shapes, sum(dtypes) AS dtypes,
              sum(events) FILTER (WHERE e.category = 'io') AS io,
              sum(events) FILTER (WHERE e.category = 'gc') AS gc,
              sum(events) FILTER (WHERE e.category = 'data') AS data,
              sum(events) FILTER (WHERE e.category = 'collective') AS collectives
            FROM ({self.kinds}) e LEFT JOIN tracks t ON t.rank = {self.scope.rank} AND t.track_id = e.track_id"""
        )
        present = {name for name, number in row.items() if number}
        if self.engine.reader.parts("neuron/Instruction", [self.scope.rank]):
            present.add("neuron")
        neuron = self.engine.reader.manifests[self.scope.rank].attributes.get("neuron") or {}
        if neuron.get("system"):
            present.add("neuron_system")
        for table in ("host_states", "memory_events", "counters"):
            if self.engine.reader.parts(table, [self.scope.rank]):
                present.add(table)
        if self.captured:
            # Our own capture hooks these: none recorded means none happened.
            present |= {"io", "gc", "data"}
        if len((self.job or self.engine).reader.ranks) > 1:
            present.add("ranks")
        return frozenset(present)

    @cached_property
    def knows_device_waits(self) -> bool:
        """Whether a replay sees what waits for device work: the host at a synchronisation, and one stream for another
        (or there is only one). Else it finds too little."""
        row = self.row(
            f"""SELECT (SELECT count(*) FROM edges WHERE rank = {self.scope.rank} AND kind IN ('stream_wait', 'event_wait', 'sync')) AS waits,
              (SELECT count(DISTINCT e.track_id) FROM events e JOIN tracks t ON t.rank = e.rank AND t.track_id = e.track_id
               WHERE {self.where()} AND t.kind <> 'thread' AND e.category IN ('kernel', 'copy', 'fill', 'collective')) AS streams,
              (SELECT count(*) FROM events e JOIN tracks t ON t.rank = e.rank AND t.track_id = e.track_id
               WHERE {self.where()} AND t.kind = 'thread' AND e.category = 'sync') AS syncs,
              (SELECT count(*) FROM events e WHERE {self.where()} AND e.category = 'kernel') AS kernels,
              (SELECT count(e.launch_id) FROM events e WHERE {self.where()} AND e.category = 'kernel') AS launched"""
        )
        # Kernels that nothing launched start when they start, whatever else changes.
        known = bool(row["waits"] or row["streams"] <= 1) and row["syncs"] >= self.count
        return known and row["launched"] >= 0.9 * row["kernels"]

    @cached_property
    def contention(self) -> Contention:
        """What telemetry says of other programs on the processor."""
        return contention(self.engine, self.scope)

    @property
    def contended(self) -> str:
        """One sentence where other programs took the processor during the recording, else empty."""
        return self.contention.sentence

    @property
    def stretch(self) -> float:
        """How many times longer than on a machine of its own the program took, by its part of the processor."""
        return self.contention.stretch

    @property
    def captured(self) -> bool:
        """Whether our own capture made this run."""
        return self.engine.reader.manifests[self.scope.rank].made_by == "capture"

    def in_sites(self, column: str, sites: Iterable[int]) -> str:
        """SQL condition: column is one of the sites."""
        listed = ", ".join(str(int(site)) for site in sorted(set(sites)))
        return f"{column} IN ({listed})" if listed else "FALSE"

    def in_texts(self, column: str, texts: Iterable[str]) -> str:
        """SQL condition: column is one of the texts."""
        return f"{column} IN ({', '.join(literal(text) for text in texts)})"


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, str | bool | int):
        return value
    number = float(value)
    return int(number) if number == int(number) else number
