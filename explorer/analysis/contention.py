"""Whether other programs used the processor while the run was recorded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from explorer.analysis.engine import Engine
from explorer.analysis.step_scope import StepScope

BUSY_MACHINE_PERCENT = 90.0
"""The machine's processors are taken as all busy from here on."""

STARVED_PROCESS_PERCENT = 70.0
"""A process that computes on one thread gets about 100 percent of a core; below this, others had the rest."""

LEAST_OF_OTHERS_PERCENT = 30.0
"""Of a core, that is neither the program's nor that of processes it started (ours: as much as the program must lack)."""


@dataclass(frozen=True)
class Contention:
    """`sentence` says it, empty where there was none. `stretch`: how many times longer than alone everything took, at 1 where
    nothing is known. `core_percent`: what the program had of a core. `medians` is what `sql` returned: of the samples of
    telemetry, null where there are none."""

    sql: str
    medians: Mapping[str, float | None]
    sentence: str = ""
    stretch: float = 1.0

    @property
    def core_percent(self) -> float:
        return 100.0 if (known := self.medians["process"]) is None else known

    @property
    def is_known(self) -> bool:
        """Whether the run holds the telemetry that tells."""
        return self.medians["machine"] is not None and self.medians["process"] is not None


def _samples(engine: Engine, scope: StepScope) -> str:
    """SQL condition for the samples of `counters` that tell: those in the steps in scope, where there are any of both.

    Outside of them a program may wait for what it started itself, such as the compiler's processes.
    """
    named = f"rank = {scope.rank} AND name IN ('machine.cpu', 'process.cpu', 'children.cpu')"
    inside = f"{named} AND timestamp_ns BETWEEN {scope.start_ns} AND {scope.end_ns}"
    known = engine.sql(
        f"SELECT count(DISTINCT name) AS n FROM counters WHERE {inside} AND name <> 'children.cpu'"
    ).rows()[0]["n"]
    return inside if known == 2 else named


def contention(engine: Engine, scope: StepScope) -> Contention:
    """Whether others took the processor; none where the run has no host telemetry.

    The machine must be busy and the program short of a core. Where it is known what the processes had that it started (workers
    of a DataLoader), they are not others.
    """
    sql = f"""SELECT round(median(value) FILTER (WHERE name = 'machine.cpu')) AS machine, round(median(value) FILTER (WHERE name = 'process.cpu')) AS process,
  round(median(value) FILTER (WHERE name = 'children.cpu')) AS children
FROM counters WHERE {_samples(engine, scope)}"""
    medians = engine.sql(sql).rows()[0]
    found = Contention(sql, medians)
    machine, process, children = medians["machine"], medians["process"], medians["children"]
    if machine is None or process is None:
        return found
    if machine < BUSY_MACHINE_PERCENT or process > STARVED_PROCESS_PERCENT:
        return found
    cores = engine.reader.manifests[scope.rank].host.get("cpu_count")
    if children is not None and isinstance(cores, int):
        others = machine * cores - process - children
        if others < LEAST_OF_OTHERS_PERCENT:
            return found
    return replace(
        found,
        sentence=f"Other programs used the processor during the recording (the machine was {machine:.0f} % busy, this program had "
        f"{process:.0f} % of a core): times are longer than on a quiet machine, and shares are less certain.",
        stretch=100.0 / max(process, 10.0),
    )
