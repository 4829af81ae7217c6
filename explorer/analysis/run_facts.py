"""What a run is, in a line: its name, steps, ranks, devices, and how healthy it is."""

from __future__ import annotations

import os
import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from explorer.analysis.damage import lacking

if TYPE_CHECKING:
    from explorer.analysis.run import Run

_CACHED = re.compile(r"[0-9a-f]{32}")
"""Directories of imports in the cache, wherever the cache lies."""


@dataclass(frozen=True)
class RunFacts:
    """`sentence`: '10 steps · 8 ranks · NVIDIA H200 · 1,234,567 events'."""

    name: str
    sentence: str
    events: int
    errors: int
    warnings: int
    finished: bool


def run_facts(run: Run) -> RunFacts:
    """Counts from the manifests where they know them, else from the small tables; cheap for any run."""
    reader = run.engine.reader
    manifests = reader.manifests.values()
    events = sum(part.rows for part in reader.parts("events"))
    steps = run.engine.sql("SELECT count(DISTINCT step) AS n FROM steps").rows()[0]["n"]
    devices = run.engine.sql(
        "SELECT name, count(DISTINCT device) AS n FROM devices WHERE device <> 'cpu' GROUP BY name ORDER BY n DESC, name"
    ).rows()
    if not devices:
        devices = run.engine.sql("SELECT DISTINCT name, 1 AS n FROM devices ORDER BY name LIMIT 1").rows()
    health: Counter[str] = Counter(
        {
            row["severity"]: row["n"]
            for row in run.engine.sql("SELECT severity, count(*) AS n FROM health GROUP BY severity").rows()
        }
    )
    health.update(row["severity"] for row in lacking(reader))
    parts = [_counted(steps, "step")] if steps else []
    parts.append(_counted(len(reader.ranks), "rank"))
    parts += [
        f"{row['n']} × {row['name']}" if row["n"] > 1 else row["name"] for row in devices if row["name"]
    ]
    parts.append(_counted(events, "event"))
    return RunFacts(
        name=_name(run),
        sentence=" · ".join(parts),
        events=events,
        errors=health["error"],
        warnings=health["warning"],
        finished=all(manifest.finished for manifest in manifests),
    )


def grown(run: Run) -> bool:
    """Whether the run on disk has more than when it was opened."""
    from explorer.model.errors import ExplorerError
    from explorer.store.reader import RunReader

    before = run.engine.reader
    try:
        now = RunReader(before.directory)
    except ExplorerError:
        return False
    return any(
        rank not in before.manifests
        or len(manifest.parts) != len(before.manifests[rank].parts)
        or manifest.finished != before.manifests[rank].finished
        for rank, manifest in now.manifests.items()
    )


def source_roots(run: Run) -> list[str]:
    """Folders in which the files of `sites` may lie: where the program ran, the working directory, beside the run."""
    roots = []
    for manifest in run.engine.reader.manifests.values():
        for known in (manifest.host, manifest.capture, manifest.attributes):
            for key in ("working_directory", "cwd", "project_root", "root"):
                if isinstance(known.get(key), str) and known[key] not in roots:
                    roots.append(known[key])
    directory = run.engine.reader.directory
    return [*roots, os.getcwd(), os.path.dirname(directory), os.path.dirname(os.path.dirname(directory))]


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _name(run: Run) -> str:
    """The run's directory; for an import in the cache, the trace it was made from."""
    reader = run.engine.reader
    directory = reader.directory
    inputs = [each.get("path") for manifest in reader.manifests.values() for each in manifest.inputs]
    known = [path for path in inputs if isinstance(path, str)]
    if _CACHED.fullmatch(os.path.basename(directory)) and known:
        return _short(known[0]) + (f" and {len(known) - 1} more" if len(known) > 1 else "")
    return _short(directory)


def _short(directory: str) -> str:
    """Relative to the working directory where that is shorter."""
    relative = os.path.relpath(directory) if "://" not in directory else directory
    return relative if len(relative) < len(directory) else directory
