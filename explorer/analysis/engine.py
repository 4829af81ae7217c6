"""DuckDB over a run, trusted: the analyses' own connection. SQL from outside goes through `sandbox`."""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import duckdb

from explorer.analysis.computed import compute
from explorer.analysis.relations import Relations, identifier, literal
from explorer.analysis.result import Result
from explorer.model.errors import QueryError
from explorer.store.reader import RunReader, damaged_file

__all__ = ["Engine", "identifier", "literal"]


class Engine:
    """A DuckDB connection with the run's tables and every view of `sql/`.

    Args:
        reader: the run.
        memory_limit: as DuckDB writes it; beyond it DuckDB spills to a temporary directory.
        threads: worker threads; None: all cores.
        rolled_up: read the roll-ups that lie in the run in place of what they are made from.
        keeps: whether `keep` keeps anything: for engines that are closed after the questions they were made for.
    """

    def __init__(
        self,
        reader: RunReader,
        *,
        memory_limit: str = "2GB",
        threads: int | None = None,
        rolled_up: bool = True,
        keeps: bool = False,
    ) -> None:
        self.reader = reader
        self._keeps = keeps
        self.rolled_up = rolled_up
        self.memory_limit = memory_limit
        self.connection = duckdb.connect(":memory:")
        self._lock = threading.RLock()
        self._kept: dict[str, str] = {}
        self._spill = os.path.join(tempfile.gettempdir(), f"neuron-explorer-{uuid.uuid4().hex}")
        self.connection.execute(f"SET memory_limit={literal(memory_limit)}")
        self.connection.execute(f"SET temp_directory={literal(self._spill)}")
        self.connection.execute("SET preserve_insertion_order=false")
        self.connection.execute("SET enable_progress_bar=false")
        if threads:
            self.connection.execute(f"SET threads={int(threads)}")
        self.relations = Relations(
            reader,
            self.connection,
            direct=True,
            compute=lambda name: compute(name, self),
            rolled_up=rolled_up,
        )

    def sql(self, text: str, parameters: Any = None, schema: str = "neuron-explorer/query/1") -> Result:
        """Run one trusted SELECT. Safe to call from any thread (one statement at a time per engine).

        Raises QueryError when a view needs a table this run lacks, InputError where a file of the run is damaged,
        duckdb.Error for other faults of the text.
        """
        with self._lock:
            try:
                with damage_named(self.reader.directory):
                    self.relations.prepare(text)
                    relation = self.connection.sql(self._reading_kept(text), params=parameters)
                    return Result(relation.to_arrow_table(), schema, text)
            except duckdb.CatalogException as error:
                if lack := self.relations.unavailable(text):
                    raise QueryError(
                        f"{lack[0]} needs the table {lack[1]}, which this run does not hold."
                    ) from error
                raise

    def keep(self, text: str) -> str:
        """Answer a trusted SELECT once and return it: statements that hold it in brackets read that answer from now on.

        For pieces that many statements share; they stay whole in what those statements show of themselves.
        """
        with self._lock:
            if self._keeps and text not in self._kept:
                with damage_named(self.reader.directory):
                    self.relations.prepare(text)
                    name = f"kept_{len(self._kept)}"
                    self.connection.execute(f"CREATE TEMP TABLE {name} AS {self._reading_kept(text)}")
                self._kept[text] = name
        return text

    def _reading_kept(self, text: str) -> str:
        # What was kept later may hold what was kept before.
        for known, name in reversed(self._kept.items()):
            text = text.replace(f"({known})", f"(FROM {name})")
        return text

    def interrupt(self) -> None:
        """Stop the running statement."""
        self.connection.interrupt()

    def close(self) -> None:
        """Close the connection and remove what it spilled."""
        self.connection.close()
        shutil.rmtree(self._spill, ignore_errors=True)


@contextmanager
def damage_named(directory: str) -> Iterator[None]:
    """Turn DuckDB's errors about wrong bytes in a file of this run into InputError.

    DuckDB has no class for them, but names the file.
    """
    try:
        yield
    except duckdb.Error as error:
        if ".parquet" in str(error) and directory in str(error):
            raise damaged_file(directory, str(error).split("LINE 1")[0]) from error
        raise
