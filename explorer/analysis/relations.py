"""The tables of a run and the views over them, made in a DuckDB connection when a statement first names them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import duckdb

from explorer.analysis.computed import COMPUTED
from explorer.analysis.gathered_rollups import SMALL_TABLES, gathered
from explorer.analysis.neuron.computed_tables import NEURON_COMPUTED
from explorer.analysis.neuron_relations import NeuronRelations
from explorer.analysis.quoting import identifier, literal
from explorer.analysis.rollup import KEPT_VIEWS, PLACE, ROLLUPS, load_view
from explorer.analysis.view import all_views
from explorer.model.schema import Table
from explorer.model.tables import TABLES
from explorer.store.reader import RunReader

if TYPE_CHECKING:
    import pyarrow as pa

SQL_TYPES = {
    "int32": "INTEGER",
    "int64": "BIGINT",
    "float64": "DOUBLE",
    "bool": "BOOLEAN",
    "string": "VARCHAR",
}
"""DuckDB types of the column types of the run's tables."""

KEPT = frozenset(
    (
        "track_extents",
        "device_tracks",
        "rank_extent",
        "rank_devices",
        "step_windows",
        "capture_pauses",
        "main_threads",
        "idle_intervals",
        "neuron_bounds",
        "neuron_dma",
        "neuron_work",
        "collectives_matched",
        "collective_waits",
        "rank_waits",
    )
)
"""Views that several others read in one answer: made once and kept."""

WORD = re.compile(r"\w+")
_COLUMN_NAME = re.compile(r"(?i)\bas\s+\w+")
"""What a statement calls a column of its answer (`count(*) AS ops`) names no relation by that."""
_CATALOGUE = re.compile(r"(?i)\b(information_schema|duckdb_\w+|show|sqlite_master|pragma\w*)\b")


def relation_name(table: str) -> str:
    """The SQL name of a table of the run that is not official Neuron: slashes become underscores."""
    return table.replace("/", "_")


def typed_nulls(spec: Table) -> str:
    """A SELECT list of one typed null per column of a table."""
    return ", ".join(
        f"NULL::{SQL_TYPES[column.type]} AS {identifier(column.name)}" for column in spec.columns
    )


def _order_of(name: str) -> str:
    """The order of a kept view's rows."""
    if name == "run_health":
        return "kind <> 'neuron_warning', CASE severity WHEN 'error' THEN 0 WHEN 'warning' THEN 1 ELSE 2 END, rank, kind"
    return f"rank, {PLACE}"


def deduplicated(table: str, source: str) -> str:
    """A FROM item of one row per identity of a dimension table.

    Ranks and windows repeat these rows; some know optional columns (the code of a line) that others lack, so every
    column takes the smallest value that is not null.
    """
    spec = TABLES[table]
    keys = ", ".join(spec.identity)
    rest = "".join(
        f", min({identifier(name)}) AS {identifier(name)}" for name in spec.names if name not in spec.identity
    )
    return f"(SELECT {keys}{rest} FROM {source} GROUP BY {keys})"


class Relations:
    """Tables and views of one run in one connection.

    Args:
        reader: the run.
        connection: where they are made.
        direct: DuckDB reads the local files itself; False: it sees them only as registered pyarrow datasets, which
            works without access to the file system.
        compute: makes a computed table (`explorer.analysis.computed`) when a statement first names it.
        rolled_up: read the roll-ups that lie in the run in place of what they are made from.
    """

    def __init__(
        self,
        reader: RunReader,
        connection: duckdb.DuckDBPyConnection,
        *,
        direct: bool,
        compute: Callable[[str], pa.Table],
        rolled_up: bool = True,
    ) -> None:
        self._compute = compute
        self._rolled_up = rolled_up
        self.reader = reader
        self._connection = connection
        self._direct = direct and reader.location.is_local
        self._by_view = direct
        self._views = all_views()
        self._neuron = NeuronRelations(reader, connection, direct=self._direct)
        extra = [name for name in reader.extra_tables if not name.startswith("neuron/")]
        self._tables = {relation_name(name): name for name in (*TABLES, *extra)}
        self._known = {name.lower(): name for name in (*self._views, *self._tables, *COMPUTED)}
        self._made: set[str] = set()
        self._listed: set[str] = set()

    def names(self) -> list[str]:
        """Every table and view a statement can name in this run."""
        views = (name for name in self._views if not self.missing(name))
        computed = (name for name in COMPUTED if not self.missing(name))
        return [*self._tables, *computed, *views, *self._neuron.names]

    def missing(self, name: str) -> str | None:
        """The table that a view needs and this run lacks, or None."""
        if name in NEURON_COMPUTED and not self._neuron.names:
            return "neuron.Instruction"
        if name in self._tables or name in COMPUTED or self._neuron.has(name):
            return None
        if name not in self._views:
            return name
        return next((m for need in self._views[name].needs if (m := self.missing(need))), None)

    def unavailable(self, text: str) -> tuple[str, str] | None:
        """The first view named in the statement that this run cannot answer, with the table it lacks."""
        for word in WORD.findall(text):
            name = self._known.get(word.lower())
            if name and (table := self.missing(name)):
                return name, table
        return None

    def prepare(self, text: str) -> None:
        """Make every table and view that the statement may name."""
        words = {word.lower() for word in WORD.findall(_COLUMN_NAME.sub(" ", text))}
        self._neuron.prepare(words)
        for word, name in self._known.items():
            if word in words:
                self._make(name)
        if _CATALOGUE.search(text):
            for name in self.names():
                self._list(name)

    def _list(self, name: str) -> None:
        """Let the catalogue show a relation. A computed table or a view is an empty one of its columns until it is named."""
        if name in self._made or name in self._listed:
            return
        if name in self._tables or self._neuron.has(name):
            self._make(name)
            return
        if name in COMPUTED:
            columns = typed_nulls(COMPUTED[name][0])
        else:
            columns = ", ".join(f"NULL::{c.type} AS {identifier(c.name)}" for c in self._views[name].columns)
        self._connection.execute(f"CREATE VIEW {identifier(name)} AS SELECT {columns} WHERE false")
        self._listed.add(name)

    def _make(self, name: str) -> None:
        if name in self._made or self.missing(name):
            return
        if self._neuron.has(name):
            self._neuron.make(name)
            return
        if name in self._listed:
            self._connection.execute(f"DROP VIEW {identifier(name)}")
            self._listed.discard(name)
        if self._rolled_up and self._make_from_rollup(name):
            self._made.add(name)
            return
        for need in self._views[name].needs if name in self._views and name not in self._tables else ():
            self._make(need)
        # Marked first: what computes a table may name it. Unmarked when making it fails or is interrupted.
        self._made.add(name)
        try:
            if name in self._tables:
                self._register(name, self._tables[name])
            elif name in COMPUTED:
                self._connection.register(name, self._compute(name))
            else:
                kind = "TABLE" if name in KEPT else "VIEW"
                view = f"CREATE OR REPLACE {kind} {identifier(name)} AS {self._views[name].sql}"
                self._connection.execute(view)
        except BaseException:
            self._made.discard(name)
            raise

    def _make_from_rollup(self, name: str) -> bool:
        """Read what the run keeps in place of a table or view, where it does: one file of all ranks, or one of each."""
        is_view = name in KEPT_VIEWS
        if not is_view and name not in ROLLUPS and name not in SMALL_TABLES:
            return False
        if path := gathered(self.reader, name):
            source = self._file(name, path)
        elif is_view and (kept := load_view(self.reader, name)) is not None:
            self._connection.register(f"__{name}", kept)
            source = identifier(f"__{name}")
        else:
            return False
        if is_view:
            columns = ", ".join(identifier(c.name) for c in self._views[name].columns)
            source = f"(SELECT {columns} FROM {source} ORDER BY {_order_of(name)})"
        kind = "TABLE" if name in KEPT else "VIEW"
        self._connection.execute(f"CREATE OR REPLACE {kind} {identifier(name)} AS SELECT * FROM {source}")
        return True

    def _file(self, name: str, path: str) -> str:
        """A FROM item of one Parquet file of the run."""
        full = self.reader.location.join(path)
        if self._direct:
            return f"read_parquet({literal(full)}, hive_partitioning=false)"
        import pyarrow.dataset as pads

        self._connection.register(
            f"__{name}", pads.dataset(full, filesystem=self.reader.location.filesystem, format="parquet")
        )
        return identifier(f"__{name}")

    def _register(self, relation: str, table: str) -> None:
        files = self.reader.files(table)
        spec = TABLES.get(table)
        empty = source = f"(SELECT {typed_nulls(spec)} WHERE false)" if spec else ""
        if files and self._direct:
            listed = ", ".join(literal(path) for path in files)
            source = f"read_parquet([{listed}], union_by_name=true, hive_partitioning=false)"
            if spec is not None:
                # A part of an older writer may lack a column; an empty typed relation supplies it as null.
                source = f"(SELECT * FROM {empty} UNION ALL BY NAME SELECT * FROM {source})"
        elif files and (spec is None or not spec.dimension) and not self._by_view:
            self._connection.register(relation, self.reader.dataset(table))
            return
        elif files:
            self._connection.register(f"__{relation}", self.reader.dataset(table))
            source = identifier(f"__{relation}")
        if spec is not None and spec.dimension and files:
            source = deduplicated(table, source)
        self._connection.execute(f"CREATE OR REPLACE VIEW {identifier(relation)} AS SELECT * FROM {source}")
