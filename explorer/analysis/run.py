"""A finished run and the answers about it: the object behind `open_run`, every verb, the terminal UI and the agents."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from explorer.analysis.result import Result
from explorer.model.errors import UsageError
from explorer.store.reader import RunReader

if TYPE_CHECKING:
    from explorer.analysis.diff.comparison import Comparison
    from explorer.analysis.engine import Engine
    from explorer.model.finding import Findings

MODES = ("native", "hta", "tracelens")
"""Definitions in which breakdown, gaps, kernels and launches can be given."""

UNTRUSTED_TIMEOUT_S = 30.0
UNTRUSTED_MAX_ROWS = 10_000


def open_run(
    path: str | os.PathLike[str],
    *,
    storage_options: dict[str, Any] | None = None,
    ranks: Iterable[int] | None = None,
    memory_limit: str = "2GB",
    threads: int | None = None,
) -> Run:
    """Open a run directory, local or `scheme://`.

    Args:
        path: the directory.
        storage_options: passed to fsspec for object stores.
        ranks: only these ranks; None: all.
        memory_limit: memory of the query engine, as DuckDB writes it; beyond it the engine spills to disk.
        threads: worker threads; None: all cores.

    Raises:
        InputError: it is no run, is damaged, or was written by a newer version.
        UsageError: it does not hold a wanted rank.
    """
    return Run(RunReader(path, storage_options, ranks), memory_limit=memory_limit, threads=threads)


class Run:
    """Answers about one run, each a `Result` with `.df()`, `.arrow()`, `.rows()` and `.to_json()`."""

    def __init__(self, reader: RunReader, *, memory_limit: str = "2GB", threads: int | None = None) -> None:
        self.reader = reader
        self.memory_limit = memory_limit
        self.threads = threads

    @property
    def directory(self) -> str:
        """Where the run lies."""
        return self.reader.directory

    @property
    def ranks(self) -> list[int]:
        """Process ranks in the run."""
        return self.reader.ranks

    @cached_property
    def engine(self) -> Engine:
        """The trusted query engine, opened at first use."""
        from explorer.analysis.engine import Engine

        return Engine(self.reader, memory_limit=self.memory_limit, threads=self.threads)

    def view(self, name: str, parameters: Any = None, *, where: str = "") -> Result:
        """All rows of a documented view or table. `where` is trusted SQL, never text from outside."""
        clause = f" WHERE {where}" if where else ""
        return self.engine.sql(f"SELECT * FROM {name}{clause}", parameters, f"neuron-explorer/{name}/1")

    def sql(
        self,
        text: str,
        *,
        timeout_s: float = UNTRUSTED_TIMEOUT_S,
        max_rows: int = UNTRUSTED_MAX_ROWS,
    ) -> Result:
        """Run one read-only statement from outside in the sandbox.

        Raises QueryError: refused, failed, or longer than `timeout_s`. More than `max_rows` rows are cut and said.
        """
        from explorer.analysis.sandbox import Sandbox

        if self._sandbox is None:
            self._sandbox = Sandbox(self.reader, memory_limit=self.memory_limit, threads=self.threads)
        return self._sandbox.sql(text, timeout_s=timeout_s, max_rows=max_rows)

    def cancel_sql(self) -> None:
        """Stop the statement that `sql` is running in another thread; it raises QueryError there."""
        if self._sandbox is not None:
            self._sandbox.cancel()

    _sandbox: Any = None

    def summary(self) -> Result:
        """One row per rank: steps, step time, where the busiest device's time goes, counts."""
        return self.view("rank_summary")

    def steps(self) -> Result:
        """Each step of each rank."""
        return self.view("steps_summary")

    def breakdown(self, mode: str = "native") -> Result:
        """Compute, exposed communication, exposed copies and idle time per rank, device and step.

        `mode` 'hta' or 'tracelens' gives the definitions of those tools. Raises UsageError for another mode.
        """
        return self._answer("breakdown", "breakdown", mode)

    def _answer(self, what: str, view: str, mode: str) -> Result:
        if mode == "native":
            return self.view(view)
        from explorer.analysis.peers.modes import in_mode

        return in_mode(self, what, mode)

    def ops(self) -> Result:
        """Framework ops by name."""
        return self.view("ops")

    def kernels(self, mode: str = "native") -> Result:
        """Device work by name."""
        return self._answer("kernels", "kernels", mode)

    def lines(self, by: str = "line") -> Result:
        """Source lines by cost: by 'line', or by 'site', which keeps a line and the comprehensions and lambdas on it apart.

        Raises UsageError for another grouping.
        """
        views = {"line": "lines_by_place", "site": "lines"}
        if by not in views:
            raise UsageError(f"Lines cannot be listed by '{by}'.", f"Choose {' or '.join(views)}.")
        return self.engine.sql(f"SELECT * FROM {views[by]}", None, "neuron-explorer/lines/1")

    def modules(self) -> Result:
        """nn.Modules by time."""
        return self.view("modules_time")

    def gaps(self, mode: str = "native") -> Result:
        """Idle intervals of the devices with their causes; in mode hta idle time per stream and category."""
        return self._answer("gaps", "gaps", mode)

    def launches(self, mode: str = "native") -> Result:
        """Device events with the calls that enqueued them."""
        return self._answer("launches", "launches", mode)

    def queue(self, mode: str = "native") -> Result:
        """How many device events were enqueued and not started, per stream."""
        return self._answer("queue", "queue_depth", mode)

    def roofline(self, by: str = "op") -> Result:
        """Achieved against attainable rates by op ('op'), source line ('line') or step ('step': MFU).

        Raises UsageError for another grouping.
        """
        views = {"op": "roofline", "line": "roofline_lines", "step": "mfu"}
        if by not in views:
            raise UsageError(f"There is no roofline by {by!r}.", f"Choose one of: {', '.join(views)}.")
        return self.view(views[by])

    def collectives(self) -> Result:
        """Communication of each rank: time, message, algorithm and bus bandwidth, overlap with compute."""
        return self.view("collective_costs")

    def health(self) -> Result:
        """What is missing, broken, repaired or doubtful, worst first."""
        from explorer.analysis.damage import with_lacking

        return with_lacking(self.view("run_health"), self.reader)

    def coverage(self) -> Result:
        """How much of op time and device time has a source line, by phase, how exactly, and why the rest has none."""
        return self.view("line_coverage")

    def memory(self) -> Result:
        """Allocated and reserved memory per rank and device: peak, growth, churn."""
        return self.view("memory_summary")

    def bottlenecks(self, settings: Mapping[str, float] | None = None) -> Findings:
        """What to change, worst first.

        `settings` changes thresholds by '<rule>.<setting>'. Raises UsageError for one that does not exist.
        """
        from explorer.analysis.findings import find
        from explorer.analysis.rule_settings import checked

        return find(self, settings=checked(settings or {}))

    def compare(self, other: Run) -> Comparison:
        """What changed from this run to another: verdict, comparability, and what explains it."""
        from explorer.analysis.diff.comparison import compare

        return compare(self, other)

    def close(self) -> None:
        """Free the query engines."""
        if "engine" in self.__dict__:
            self.engine.close()
        if self._sandbox is not None:
            self._sandbox.close()

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *unused: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Run({self.directory!r}, ranks={self.ranks})"
