"""A small, readable way to write a run by hand: lines, ops, kernels and steps in microseconds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from explorer.analysis.run import Run, open_run
from explorer.model import ids
from explorer.store.writer import RunWriter

EPOCH_NS = 1_700_000_000_000_000_000


def at(microseconds: float) -> int:
    """Microseconds after the run's start as run time."""
    return EPOCH_NS + round(microseconds * 1000)


class RunBuilder:
    """Collects rows; `open` writes them and opens the run. All times in microseconds from the start."""

    def __init__(self, directory: Path, rank: int = 0, made_by: str = "capture") -> None:
        self.directory, self.rank, self.made_by = directory, rank, made_by
        self.rows: dict[str, list[dict[str, Any]]] = {}
        self.cost: dict[str, Any] = {}
        self.host: dict[str, Any] = {}
        self._event = 0
        self._tracks = 0
        self._steps: list[tuple[int, int, int]] = []
        self.main = self.track("thread", "cpu", None, "main")

    def row(self, table: str, **values: Any) -> None:
        self.rows.setdefault(table, []).append({"rank": self.rank, **values})

    def track(self, kind: str, device_type: str, device_index: int | None, label: str) -> int:
        self._tracks += 1
        self.row(
            "tracks",
            track_id=self._tracks,
            kind=kind,
            device_type=device_type,
            device_index=device_index,
            label=label,
        )
        return self._tracks

    def stream(self, index: int = 0, device_type: str = "cuda", label: str = "stream 7") -> int:
        return self.track("stream", device_type, index, label)

    def steps(self, count: int, duration: float, first: int = 0, start: float = 0) -> None:
        for i in range(count):
            begin = at(start + i * duration)
            self._steps.append((first + i, begin, begin + round(duration * 1000)))
            self.row(
                "steps", step=first + i, start_ns=begin, duration_ns=round(duration * 1000), complete=True
            )

    def line(
        self, line: int, code: str, function: str = "train", file: str = "train.py", is_user: bool = True
    ) -> int:
        site = ids.site_id(file, line, function)
        rows = self.rows.setdefault("sites", [])
        if all(row["site_id"] != site for row in rows):
            rows.append(
                {
                    "site_id": site,
                    "file": file,
                    "line": line,
                    "function": function,
                    "code": code,
                    "is_user": is_user,
                }
            )
        return site

    def stack(self, *sites: int) -> int:
        """A call chain, innermost first."""
        stack = ids.stack_id(sites)
        rows = self.rows.setdefault("stacks", [])
        if all(row["stack_id"] != stack for row in rows):
            rows += [{"stack_id": stack, "depth": depth, "site_id": site} for depth, site in enumerate(sites)]
        return stack

    def step_of(self, time_ns: int) -> int | None:
        return next((step for step, start, end in self._steps if start <= time_ns < end), None)

    def event(self, category: str, name: str, start: float, duration: float, *, track: int | None = None, site: int | None = None,
              stack: int | None = None, parent: int | None = None, **more: Any) -> int:  # fmt: skip
        self._event += 1
        begin, length = at(start), round(duration * 1000)
        if isinstance(more.get("attributes"), dict):
            more["attributes"] = json.dumps(more["attributes"])
        self.row(
            "events", event_id=self._event, parent_id=parent, track_id=track or self.main, category=category, name=name,
            start_ns=begin, duration_ns=length, self_ns=length, step=self.step_of(begin), site_id=site,
            stack_id=stack if stack is not None else (self.stack(site) if site is not None else None),
            **more,
        )  # fmt: skip
        return self._event

    def op(self, name: str, start: float, duration: float, **more: Any) -> int:
        return self.event("op", name, start, duration, **more)

    def state(
        self,
        site: int | None,
        start: float,
        duration: float,
        stack: int | None = None,
        track: int | None = None,
    ) -> None:
        if stack is None and site is not None:
            stack = self.stack(site)
        self.row(
            "host_states",
            track_id=track or self.main,
            start_ns=at(start),
            duration_ns=round(duration * 1000),
            site_id=site,
            stack_id=stack,
        )

    def write(self) -> str:
        """Write the run and return its directory."""
        with RunWriter(self.directory, rank=self.rank, made_by=self.made_by) as writer:
            writer.manifest.cost.update(self.cost)
            writer.manifest.host.update(self.host)
            for table, rows in self.rows.items():
                if table in ("sites", "stacks", "modules", "sources"):
                    rows = [{name: value for name, value in row.items() if name != "rank"} for row in rows]
                writer.write(table, rows)
        return writer.directory

    def open(self) -> Run:
        """Write the run and open it."""
        return open_run(self.write())
