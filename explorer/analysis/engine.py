"""DuckDB over a run, trusted: the analyses' own connection. SQL from outside goes through `sandbox`."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import threading
import uuid
from typing import Any

import duckdb

from explorer.analysis.result import Result
from explorer.analysis.view import all_views
from explorer.model.errors import QueryError
from explorer.model.schema import Table
from explorer.model.tables import TABLES
from explorer.store.reader import RunReader

SQL_TYPES = {
    "int32": "INTEGER",
    "int64": "BIGINT",
    "float64": "DOUBLE",
    "bool": "BOOLEAN",
    "string": "VARCHAR",
}
"""DuckDB types of the column types of the run's tables."""

_WORD = re.compile(r"\w+")
_CATALOGUE = re.compile(r"(?i)\b(information_schema|duckdb_\w+|show|sqlite_master|pragma)\b")


def identifier(name: str) -> str:
    """A quoted SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """A quoted SQL string."""
    return "'" + text.replace("'", "''") + "'"


def relation_name(table: str) -> str:
    """The SQL name of a table of the run: `neuron/Instruction` is `neuron_Instruction`."""
    return table.replace("/", "_")


def typed_nulls(spec: Table) -> str:
    """A SELECT list of one typed null per column of a table."""
    return ", ".join(
        f"NULL::{SQL_TYPES[column.type]} AS {identifier(column.name)}" for column in spec.columns
    )


def deduplicated(table: str, source: str) -> str:
    """A FROM item of one row per identity of a dimension table.

    Ranks and windows repeat these rows; some know optional columns (the code of a line) that others lack, so every
    column takes the smallest value that is not null.
    """
    spec = TABLES[table]
    keys = ", ".join(spec.identity)
    rest = ", ".join(
        f"min({identifier(name)}) AS {identifier(name)}" for name in spec.names if name not in spec.identity
    )
    return f"(SELECT {keys}{', ' if rest else ''}{rest} FROM {source} GROUP BY {keys})"


class Engine:
    """A DuckDB connection with the run's tables and every view of `sql/`, made when a statement first names them.

    Args:
        reader: the run.
        memory_limit: as DuckDB writes it; beyond it DuckDB spills to a temporary directory.
        threads: worker threads; None: all cores.
    """

    def __init__(self, reader: RunReader, *, memory_limit: str = "2GB", threads: int | None = None) -> None:
        self.reader = reader
        self.connection = duckdb.connect(":memory:")
        self._lock = threading.RLock()
        self._spill = os.path.join(tempfile.gettempdir(), f"neuron-explorer-{uuid.uuid4().hex}")
        self.connection.execute(f"SET memory_limit={literal(memory_limit)}")
        self.connection.execute(f"SET temp_directory={literal(self._spill)}")
        self.connection.execute("SET preserve_insertion_order=false")
        if threads:
            self.connection.execute(f"SET threads={int(threads)}")
        self._views = all_views()
        self._tables = {relation_name(name): name for name in (*TABLES, *reader.extra_tables)}
        self._known = {name.lower(): name for name in (*self._tables, *self._views)}
        self._made: set[str] = set()

    def names(self) -> list[str]:
        """Every table and view a statement can name in this run."""
        return [*self._tables, *(name for name in self._views if not self.missing(name))]

    def missing(self, name: str) -> str | None:
        """The table that a view needs and this run lacks, or None."""
        if name in self._tables:
            return None
        if name not in self._views:
            return name
        return next((m for need in self._views[name].needs if (m := self.missing(need))), None)

    def prepare(self, text: str) -> None:
        """Make every table and view that the statement may name."""
        if _CATALOGUE.search(text):
            wanted = set(self.names())
        else:
            wanted = {self._known[w] for word in _WORD.findall(text) if (w := word.lower()) in self._known}
        for name in wanted:
            self._make(name)

    def _make(self, name: str) -> None:
        if name in self._made:
            return
        if name in self._tables:
            self._made.add(name)
            self._register(name, self._tables[name])
            return
        if self.missing(name):
            return
        for need in self._views[name].needs:
            self._make(need)
        self._made.add(name)
        self.connection.execute(f"CREATE VIEW {identifier(name)} AS {self._views[name].sql}")

    def _register(self, relation: str, table: str) -> None:
        files = self.reader.files(table)
        if files and self.reader.location.is_local:
            listed = ", ".join(literal(path) for path in files)
            source = f"read_parquet([{listed}], union_by_name=true, hive_partitioning=false)"
            spec = TABLES.get(table)
            if spec is not None:
                # A part of an older writer may lack a column; an empty typed relation supplies it as null.
                source = f"(SELECT {typed_nulls(spec)} WHERE false UNION ALL BY NAME SELECT * FROM {source})"
        else:
            self.connection.register(f"__{relation}", self.reader.dataset(table))
            source = identifier(f"__{relation}")
        if table in TABLES and TABLES[table].dimension:
            source = deduplicated(table, source)
        self.connection.execute(f"CREATE VIEW {identifier(relation)} AS SELECT * FROM {source}")

    def sql(self, text: str, parameters: Any = None, schema: str = "neuron-explorer/query/1") -> Result:
        """Run one trusted SELECT. Safe to call from any thread (one statement at a time per engine).

        Raises QueryError when a view needs a table this run lacks, duckdb.Error for other faults of the text.
        """
        with self._lock:
            self.prepare(text)
            try:
                relation = self.connection.sql(text, params=parameters)
            except duckdb.CatalogException as error:
                raise self._explained(text) or error from error
            return Result(relation.to_arrow_table(), schema, text)

    def _explained(self, text: str) -> QueryError | None:
        for word in _WORD.findall(text):
            if word in self._views and (table := self.missing(word)):
                return QueryError(f"The view {word} needs the table {table}, which this run does not hold.")
        return None

    def interrupt(self) -> None:
        """Stop the running statement."""
        self.connection.interrupt()

    def close(self) -> None:
        """Close the connection and remove what it spilled."""
        self.connection.close()
        shutil.rmtree(self._spill, ignore_errors=True)
