"""What a step's time went to, in parts that add up to it: per device and rank, over the complete steps."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from explorer.analysis.run import Run

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


@dataclass(frozen=True)
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
    steps: tuple[StepBar, ...]


def step_stories(run: Run) -> list[StepStory]:
    """Every rank and device, from `breakdown` and, on the CPU, `host_activity`."""
    rows = run.engine.sql("SELECT * FROM breakdown ORDER BY rank, device, start_ns").rows()
    activity: dict[tuple[int, int | None], dict[str, int]] = {}
    if any(row["device"] == "cpu" for row in rows):
        for row in run.engine.sql("SELECT * FROM host_activity").rows():
            key = row["rank"], row["step"]
            activity.setdefault(key, {})[row["category"]] = row["duration_ns"]
    bars: dict[tuple[int, str], list[StepBar]] = {}
    for row in rows:
        bars.setdefault((row["rank"], row["device"]), []).append(_bar(row, activity))
    return [_story(rank, device, group) for (rank, device), group in bars.items()]


def _bar(row: dict[str, Any], activity: dict[tuple[int, int | None], dict[str, int]]) -> StepBar:
    parts = {key: row[column] for column, key in _COLUMNS.items()}
    if row["device"] == "cpu":
        parts["op"] = parts.pop("compute")
        rest = parts.pop("idle")
        own = activity.get((row["rank"], row["step"]), {})
        # Other threads may run ops meanwhile: what is explained never exceeds what is left.
        for key in ("data", "sync", "io", "gc", "compile", "runtime"):
            parts[key] = min(own.get(key, 0), rest)
            rest -= parts[key]
        parts["python"] = rest
    return StepBar(
        row["rank"], row["device"], row["step"], row["start_ns"], row["wall_ns"], bool(row["complete"]), parts
    )


def _story(rank: int, device: str, bars: list[StepBar]) -> StepStory:
    numbered = [bar for bar in bars if bar.step is not None]
    counted = [bar for bar in numbered if bar.complete] or numbered or bars
    total = sum(bar.wall_ns for bar in counted)
    count = len(counted)
    parts = []
    for key in PARTS:
        duration = sum(bar.parts.get(key, 0) for bar in counted)
        if duration:
            label, meaning = PARTS[key]
            parts.append(StepPart(key, label, duration // count, duration / total, meaning))
    walls = [bar.wall_ns for bar in counted]
    return StepStory(
        rank=rank,
        device=device,
        count=count,
        has_steps=bool(numbered),
        mean_ns=total // count,
        median_ns=int(median(walls)),
        shortest_ns=min(walls),
        longest_ns=max(walls),
        parts=tuple(parts),
        steps=tuple(numbered or bars),
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
