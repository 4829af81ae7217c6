"""What a step's time went to, in parts that add up to it: per device and rank, over the complete steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from explorer.analysis.run import Run

Column: TypeAlias = npt.NDArray[Any]

PARTS: dict[str, tuple[str, str]] = {
    "compute": ("compute", "Kernels were running."),
    "communication": ("communication", "Communication not hidden under compute."),
    "copy": ("copies", "Only memory copies or fills ran."),
    "idle": ("idle", "The device waited for the host or for data."),
    "op": ("ops", "Framework ops were running on the CPU."),
    "data": ("data loading", "The training thread waited for the next batch."),
    "sync": ("waiting", "The training thread waited for a device or another thread."),
    "io": ("file I/O", "The training thread read or wrote files."),
    "gc": ("garbage collection", "Python's garbage collector ran."),
    "compile": ("compilation", "Graphs or kernels were compiled."),
    "runtime": ("runtime calls", "Calls into the device runtime, outside ops."),
    "python": ("Python", "Python between ops: loops, indexing, logging."),
}
"""Every part: its label and what it means."""

_COLUMNS = {
    "compute_ns": "compute",
    "exposed_communication_ns": "communication",
    "exposed_copy_ns": "copy",
    "idle_ns": "idle",
}


@dataclass(frozen=True)
class StepPart:
    """One part: mean time per step and its share of the step."""

    key: str
    label: str
    duration_ns: int
    share: float
    meaning: str


@dataclass(frozen=True)
class StepBar:
    """One step of one rank and device: `parts` maps keys to ns and adds up to `wall_ns`."""

    rank: int
    device: str
    step: int | None
    start_ns: int
    wall_ns: int
    complete: bool
    parts: dict[str, int]


@dataclass(frozen=True, eq=False)
class StepStory:
    """One rank and device. Means over `count` complete steps; the whole recording is one step where there are none."""

    rank: int
    device: str
    count: int
    has_steps: bool
    mean_ns: int
    median_ns: int
    shortest_ns: int
    longest_ns: int
    parts: tuple[StepPart, ...]
    columns: Mapping[str, Column]
    """The numbers of `steps`: step (-1: none), start_ns, wall_ns, complete, and each part in ns"""

    @cached_property
    def steps(self) -> tuple[StepBar, ...]:
        """Its steps in order of time, without the time outside them where there are any. Made when asked for: of a run of
        many ranks few are looked at."""
        keys = [key for key in PARTS if key in self.columns]
        plain = {name: values.tolist() for name, values in self.columns.items()}
        return tuple(
            StepBar(
                self.rank,
                self.device,
                None if step < 0 else step,
                plain["start_ns"][row],
                plain["wall_ns"][row],
                plain["complete"][row],
                {key: plain[key][row] for key in keys},
            )
            for row, step in enumerate(plain["step"])
        )


_EXPLAINED = ("data", "sync", "io", "gc", "compile", "runtime")
"""What the busiest host thread did outside ops: other threads may run ops meanwhile, and what is explained never exceeds
what is left, in this order."""

_STEPS = """
SELECT b.rank, b.device, coalesce(b.step, -1) AS step, b.start_ns, b.wall_ns, coalesce(b.complete, false) AS complete,
       b.compute_ns, b.exposed_communication_ns, b.exposed_copy_ns, b.idle_ns, {explained}
FROM breakdown AS b
{join}
ORDER BY b.rank, b.device, b.start_ns
"""
_OF_DEVICES = _STEPS.format(explained=", ".join(f"0::BIGINT AS {key}" for key in _EXPLAINED), join="")
_OF_HOSTS_TOO = _STEPS.format(
    explained=", ".join(f"coalesce(a.{key}, 0) AS {key}" for key in _EXPLAINED),
    join=f"""
LEFT JOIN (
    SELECT rank, step, {", ".join(f"sum(duration_ns) FILTER (category = '{key}')::BIGINT AS {key}" for key in _EXPLAINED)}
    FROM host_activity GROUP BY rank, step
) AS a ON b.device = 'cpu' AND a.rank = b.rank AND a.step IS NOT DISTINCT FROM b.step
""",
)


def step_stories(run: Run) -> list[StepStory]:
    """Every rank and device, from `breakdown` and, on the CPU, `host_activity`."""
    # What the hosts did takes every event to know; where devices explain the steps, nobody asks.
    hosts = run.engine.sql("SELECT rank FROM breakdown WHERE device = 'cpu' LIMIT 1").rows()
    rows = run.engine.sql(_OF_HOSTS_TOO if hosts else _OF_DEVICES).arrow()
    ranks, devices = rows.column("rank").to_numpy(), rows.column("device").to_pylist()
    columns = {
        name: rows.column(name).to_numpy() for name in rows.column_names if name not in ("rank", "device")
    }
    begins = [
        row
        for row in range(len(devices))
        if not row or ranks[row] != ranks[row - 1] or devices[row] != devices[row - 1]
    ]
    return [
        _story(
            int(ranks[begin]), devices[begin], {name: values[begin:end] for name, values in columns.items()}
        )
        for begin, end in zip(begins, [*begins[1:], len(devices)])
    ]


def _parts(device: str, rows: Mapping[str, Column]) -> dict[str, Column]:
    parts = {key: rows[column] for column, key in _COLUMNS.items()}
    if device == "cpu":
        parts["op"] = parts.pop("compute")
        rest = parts.pop("idle")
        for key in _EXPLAINED:
            parts[key] = np.minimum(rows[key], rest)
            rest = rest - parts[key]
        parts["python"] = rest
    return parts


def _story(rank: int, device: str, rows: Mapping[str, Column]) -> StepStory:
    parts = _parts(device, rows)
    numbered = rows["step"] >= 0
    counted = numbered & rows["complete"]
    if not counted.any():
        counted = numbered if numbered.any() else np.ones(len(numbered), bool)
    walls = rows["wall_ns"][counted]
    total, count = int(walls.sum()), len(walls)
    means = []
    for key in PARTS:
        if key in parts and (duration := int(parts[key][counted].sum())):
            label, meaning = PARTS[key]
            means.append(StepPart(key, label, duration // count, duration / total, meaning))
    shown = numbered if numbered.any() else np.ones(len(numbered), bool)
    kept = {name: rows[name] for name in ("step", "start_ns", "wall_ns", "complete")} | parts
    return StepStory(
        rank=rank,
        device=device,
        count=count,
        has_steps=bool(numbered.any()),
        mean_ns=total // count,
        median_ns=int(np.median(walls)),
        shortest_ns=int(walls.min()),
        longest_ns=int(walls.max()),
        parts=tuple(means),
        columns={name: values[shown] for name, values in kept.items()},
    )


def worst_story(stories: list[StepStory]) -> StepStory | None:
    """The rank and device whose step takes longest (the busiest device of that rank)."""
    if not stories:
        return None
    slowest = max(stories, key=lambda story: (story.median_ns, -story.rank)).rank
    own = [story for story in stories if story.rank == slowest]
    return min(own, key=lambda story: sum(p.duration_ns for p in story.parts if p.key in ("idle", "python")))


def rank_bars(stories: list[StepStory]) -> list[StepBar]:
    """The mean step of each rank as a bar, on its busiest device, in the order of the ranks."""
    bars = []
    for rank in sorted({story.rank for story in stories}):
        story = worst_story([each for each in stories if each.rank == rank])
        assert story is not None
        parts = {part.key: part.duration_ns for part in story.parts}
        bars.append(StepBar(rank, story.device, None, story.steps[0].start_ns, story.mean_ns, True, parts))
    return bars
