"""Whether other programs used the processor while the run was recorded."""

from __future__ import annotations

from dataclasses import dataclass

from explorer.analysis.engine import Engine
from explorer.analysis.step_scope import StepScope

BUSY_MACHINE_PERCENT = 90.0
"""The machine's processors are taken as all busy from here on."""

STARVED_PROCESS_PERCENT = 70.0
"""A process that computes on one thread gets about 100 percent of a core; below this, others had the rest."""


@dataclass(frozen=True)
class Contention:
    """`sentence` says it, empty where there was none. `stretch`: how many times longer than alone everything took, at 1 where
    nothing is known. `core_percent`: what the program had of a core."""

    sentence: str = ""
    stretch: float = 1.0
    core_percent: float = 100.0


def samples(engine: Engine, scope: StepScope) -> str:
    """SQL condition for the samples of `counters` that tell: those in the steps in scope, where there are any of both.

    Outside of them a program may wait for what it started itself, such as the compiler's processes.
    """
    named = f"rank = {scope.rank} AND name IN ('machine.cpu', 'process.cpu')"
    inside = f"{named} AND timestamp_ns BETWEEN {scope.start_ns} AND {scope.end_ns}"
    known = engine.sql(f"SELECT count(DISTINCT name) AS n FROM counters WHERE {inside}").rows()[0]["n"]
    return inside if known == 2 else named


def contention(engine: Engine, scope: StepScope) -> Contention:
    """Whether others took the processor; none where the run has no host telemetry."""
    row = engine.sql(
        f"""SELECT median(value) FILTER (WHERE name = 'machine.cpu') AS machine,
          median(value) FILTER (WHERE name = 'process.cpu') AS process
        FROM counters WHERE {samples(engine, scope)}"""
    ).rows()[0]
    machine, process = row["machine"], row["process"]
    if machine is None or process is None:
        return Contention()
    if machine < BUSY_MACHINE_PERCENT or process > STARVED_PROCESS_PERCENT:
        return Contention()
    return Contention(
        f"Other programs used the processor during the recording (the machine was {machine:.0f} % busy, this program had "
        f"{process:.0f} % of a core): times are longer than on a quiet machine, and shares are less certain.",
        100.0 / max(process, 10.0),
        process,
    )
