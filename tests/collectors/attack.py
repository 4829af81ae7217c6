"""Imports of hostile files in child processes with little memory and time, and what must hold whatever the file is."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from explorer.store.reader import RunReader

MEMORY_BYTES = 3 << 30
SECONDS = 120

_CHILD = """
import contextlib, io, json, os, resource, sys
from explorer.cli.main import main
from explorer.collectors import import_trace
memory, seconds = int(sys.argv[1]), int(sys.argv[2])
for name in import_trace.IMPORTERS:
    __import__(name)
for path, out in json.load(sys.stdin):
    child = os.fork()
    if not child:
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        said, printed = io.StringIO(), io.StringIO()
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(printed):
            code = main(["import", path, "-o", out])
        with open(out + ".result", "w") as file:
            json.dump([code, said.getvalue()], file)
        os._exit(0)
    os.waitpid(child, 0)
"""


@dataclass
class Outcome:
    """How one import ended: exit code (None: it crashed, or needed more memory or time), what it said, its run."""

    name: str
    code: int | None
    said: str
    run: RunReader | None

    def events(self) -> Counter[tuple[Any, ...]]:
        """Name, start and duration of every event."""
        return self.rows("events", "name", "start_ns", "duration_ns")

    def memory(self) -> Counter[tuple[Any, ...]]:
        """Action, address and size of every memory event."""
        return self.rows("memory_events", "action", "address", "size_bytes")

    def health(self) -> dict[str, int]:
        """Count by kind."""
        if self.run is None:
            return {}
        return {row["kind"]: row["count"] for row in self.run.read("health").to_pylist()}

    def rows(self, table: str, *columns: str) -> Counter[tuple[Any, ...]]:
        """Some columns of every row of a table."""
        if self.run is None:
            return Counter()
        rows = self.run.read(table).select(list(columns)).to_pylist()
        return Counter(tuple(row[column] for column in columns) for row in rows)


def attack(files: Mapping[str, bytes], folder: Path) -> dict[str, Outcome]:
    """Import each file alone, by its name, through the command line.

    Checked for each: no crash, no bug report, one line that says what happened where it was refused, exit code 0, 3 or 4, no
    half-written run, the input and its folder as they were, and every row accounted for.
    """
    work = []
    for number, (name, data) in enumerate(files.items()):
        place = folder / f"{number}" / "in"
        place.mkdir(parents=True)
        (place / os.path.basename(name)).write_bytes(data)
        work.append((str(place / os.path.basename(name)), str(folder / f"{number}" / "out" / "run")))
        (folder / f"{number}" / "out").mkdir()
    before = [_state(os.path.dirname(path)) for path, _ in work]
    scratch = folder / "tmp"
    scratch.mkdir()
    subprocess.run(
        [sys.executable, "-c", _CHILD, str(MEMORY_BYTES), str(SECONDS)],
        input=json.dumps(work).encode(),
        env={
            **os.environ,
            "TMPDIR": str(scratch),
            "XDG_STATE_HOME": str(folder / "state"),
            "OMP_NUM_THREADS": "1",
        },
        check=True,
    )
    found = {}
    for name, (path, out), state in zip(files, work, before):
        found[name] = outcome = _outcome(name, out)
        assert _state(os.path.dirname(path)) == state, name
        _check(outcome, out)
    assert list(scratch.iterdir()) == []
    return found


def _outcome(name: str, out: str) -> Outcome:
    try:
        with open(out + ".result") as file:
            code, said = json.load(file)
    except FileNotFoundError:
        return Outcome(name, None, "", None)
    return Outcome(name, code, said, RunReader(out) if os.path.isdir(out) else None)


def _check(outcome: Outcome, out: str) -> None:
    name = outcome.name
    assert outcome.code in (0, 3, 4), (name, outcome)
    assert "This is a bug" not in outcome.said, (name, outcome.said)
    assert "Traceback" not in outcome.said, (name, outcome.said)
    left = sorted(set(os.listdir(os.path.dirname(out))) - {"run.result"})
    if outcome.code == 3:
        assert left == [], (name, left)
        assert len(outcome.said.strip().splitlines()) == 1, (name, outcome.said)
        return
    assert left == ["run"], (name, left)
    assert outcome.run is not None
    for manifest in outcome.run.manifests.values():
        assert manifest.finished, name
    health = set(outcome.run.read("health")["kind"].to_pylist())
    assert "counts_differ" not in health, name


def _state(folder: str) -> list[tuple[str, int, int]]:
    return [(entry.name, entry.stat().st_size, entry.stat().st_mtime_ns) for entry in os.scandir(folder)]
