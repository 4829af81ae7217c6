"""DuckDB over a run, trusted: the analyses' own connection. SQL from outside goes through `sandbox`."""

from __future__ import annotations

import threading
from typing import Any

import duckdb

from explorer.analysis.result import Result
from explorer.analysis.view import all_views
from explorer.model.tables import TABLES
from explorer.store.reader import RunReader


def identifier(name: str) -> str:
    """A quoted SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """A quoted SQL string."""
    return "'" + text.replace("'", "''") + "'"


class Engine:
    """A DuckDB connection with the run's tables and every view of `sql/`.

    Args:
        reader: the run.
        memory_limit: as DuckDB writes it; beyond it DuckDB spills to disk.
        threads: worker threads; None: all cores.
    """

    def __init__(self, reader: RunReader, *, memory_limit: str = "2GB", threads: int | None = None) -> None:
        self.reader = reader
        self.connection = duckdb.connect(":memory:")
        self._lock = threading.RLock()
        self.connection.execute(f"SET memory_limit={literal(memory_limit)}")
        self.connection.execute("SET preserve_insertion_order=false")
        if threads:
            self.connection.execute(f"SET threads={int(threads)}")
        for name in TABLES:
            self._register(name)
        for view in all_views().values():
            self.connection.execute(f"CREATE VIEW {identifier(view.name)} AS {view.sql}")

    def _register(self, name: str) -> None:
        spec = TABLES[name]
        files = self.reader.files(name)
        if files and self.reader.location.is_local:
            listed = ", ".join(literal(path) for path in files)
            source = f"read_parquet([{listed}], union_by_name=true, hive_partitioning=false)"
        else:
            self.connection.register(f"__{name}", self.reader.dataset(name))
            source = f'"__{name}"'
        if spec.dimension:
            keys = ", ".join(spec.identity)
            # Rows of one identity are equal but for optional columns: prefer the one that knows its code.
            source = f"(SELECT DISTINCT ON ({keys}) * FROM {source} ORDER BY {keys})"
        self.connection.execute(f"CREATE VIEW {identifier(name)} AS SELECT * FROM {source}")

    def sql(self, text: str, parameters: Any = None, schema: str = "neuron-explorer/query/1") -> Result:
        """Run one trusted statement. Safe to call from any thread (one statement at a time per engine)."""
        with self._lock:
            relation = self.connection.execute(text, parameters)
            return Result(relation.to_arrow_table(), schema, text)

    def interrupt(self) -> None:
        """Stop the running statement."""
        self.connection.interrupt()

    def close(self) -> None:
        self.connection.close()
