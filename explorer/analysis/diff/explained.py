"""What explains a change of the step time: time on the critical path per step, by phase, module, line, op, kernel.

Taken are the middle half of the complete steps by duration: their mean is close to the median step and free of rare
slow ones. The pieces of the path add up to the step, so in each of these tables the changes add up to the change of that
mean.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from explorer.analysis.diff.line_map import line_map, moved_files

if TYPE_CHECKING:
    from explorer.analysis.run import Run

NOTHING = "(none)"


@dataclass(frozen=True, slots=True)
class Delta:
    """One thing in both runs, in ns per step on the critical path. `status` is same, new, vanished or renamed."""

    key: str
    before_ns: int
    after_ns: int
    calls_before: float
    calls_after: float
    status: str = "same"
    detail: str = ""

    @property
    def change_ns(self) -> int:
        return self.after_ns - self.before_ns


@dataclass(frozen=True)
class PathWork:
    """The rows of `path_work` of one run's slowest rank, summed over the middle half of its steps; a run without steps is one."""

    rank: int
    steps: int
    rows: list[dict[str, Any]]
    sources: dict[str, str]

    @property
    def mean_step_ns(self) -> float:
        return sum(row["duration_ns"] for row in self.rows) / self.steps


_MIDDLE_HALF = """
WITH s AS (
    SELECT step, duration_ns, quantile_cont(duration_ns, 0.25) OVER () AS low, quantile_cont(duration_ns, 0.75) OVER () AS high
    FROM steps WHERE rank = ? AND complete
)
SELECT DISTINCT step FROM s WHERE duration_ns BETWEEN low AND high
"""

_SUMS = """
SELECT kind, phase, module, file, line, function, code, op, kernel, sum(duration_ns)::BIGINT AS duration_ns,
       count(DISTINCT event_id) AS calls
FROM path_work WHERE rank = ? AND (step IS NULL OR step IN (SELECT unnest(?::INTEGER[]))) GROUP BY ALL
"""


def path_work(run: Run, rank: int) -> PathWork:
    """Sum up one rank."""
    steps = run.engine.sql(_MIDDLE_HALF, [rank]).arrow().column("step").to_pylist()
    rows = run.engine.sql(_SUMS, [rank, steps]).rows()
    sources = {row["file"]: row["text"] for row in run.engine.sql("SELECT file, text FROM sources").rows()}
    return PathWork(rank, max(1, len(steps)), rows, sources)


def deltas(
    before: PathWork,
    after: PathWork,
    key: Callable[[dict[str, Any]], str | None],
    match: dict[str, str] | None = None,
) -> list[Delta]:
    """Compare by a key, largest change first. `match` renames keys of the old run to those of the new one."""
    a = _summed(before, lambda row: (match or {}).get(k, k) if (k := key(row)) is not None else None)
    b = _summed(after, key)
    found = []
    for name in a.keys() | b.keys():
        before_ns, calls_before = a.get(name, (0.0, 0.0))
        after_ns, calls_after = b.get(name, (0.0, 0.0))
        status = "new" if name not in a else "vanished" if name not in b else "same"
        found.append(Delta(str(name), round(before_ns), round(after_ns), calls_before, calls_after, status))
    return sorted(found, key=lambda delta: (-abs(delta.change_ns), delta.key))


def _summed(work: PathWork, key: Callable[[dict[str, Any]], Hashable]) -> dict[Hashable, tuple[float, float]]:
    sums: dict[Hashable, list[float]] = {}
    for row in work.rows:
        name = key(row)
        entry = sums.setdefault(NOTHING if name is None else name, [0.0, 0.0])
        entry[0] += row["duration_ns"] / work.steps
        entry[1] += row["calls"] / work.steps
    return {name: (entry[0], entry[1]) for name, entry in sums.items()}


def line_key(row: dict[str, Any]) -> str | None:
    """file:line."""
    return None if row["file"] is None else f"{row['file']}:{row['line']}"


def matched_lines(before: PathWork, after: PathWork) -> dict[str, str]:
    """Lines of the old run by where they stand in the new one, through the stored sources of both."""
    renamed: dict[str, str] = {}
    moved = moved_files(before.sources, after.sources)
    for file, text in before.sources.items():
        new_file = moved.get(file, file)
        new_text = after.sources.get(new_file)
        if new_text is None or (new_text == text and new_file == file):
            continue
        mapping = line_map(text, new_text)
        for old, new in mapping.items():
            renamed[f"{file}:{old}"] = f"{new_file}:{new}"
        count = text.count("\n") + 2
        # A line that is gone must not fall on an unrelated line of the same number.
        renamed.update(
            (f"{file}:{old}", f"{file}:{old} (removed)") for old in range(1, count) if old not in mapping
        )
    return renamed
