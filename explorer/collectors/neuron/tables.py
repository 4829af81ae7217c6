"""One profile's tables as DuckDB views with the official columns, whatever version wrote them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import pyarrow.parquet as pq

from explorer.collectors.neuron.layout import ProfileDirectory
from explorer.model.neuron_schema import official_tables, source_columns


@dataclass(frozen=True)
class SourceTable:
    """What one table of one profile holds: its files that could be read, its columns with types, and its rows."""

    name: str
    files: tuple[str, ...]
    rows: int
    columns: dict[str, str]
    official: dict[str, str]
    filled: frozenset[str]
    unreadable: tuple[tuple[str, str], ...]

    @property
    def extra_columns(self) -> list[str]:
        """Columns the reference does not know."""
        return sorted(set(self.columns) - set(self.official.values()))

    @property
    def renamed(self) -> dict[str, str]:
        """Official name to the name found, where they differ."""
        return {name: found for name, found in self.official.items() if name != found}


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def text_literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


class ProfileTables:
    """Opens every table of a profile. Each official one is a view of the same name with every official column.

    Columns that the profile lacks are null; columns of another type are cast, and what cannot be cast is null.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection, profile: ProfileDirectory) -> None:
        self.connection = connection
        self.profile = profile
        self.version = ""
        self.sources: dict[str, SourceTable] = {}
        self.major: int | None = None
        if "Metadata" in profile.files:
            self._open("Metadata", None)
            if "profile_schema_version" in self.sources["Metadata"].columns:
                self.version = str(
                    self.value(
                        f"SELECT CAST(profile_schema_version AS VARCHAR) FROM {self.scan('Metadata')} LIMIT 1"
                    )
                    or ""
                )
            head = self.version.split(".")[0]
            self.major = int(head) if head.isdigit() else None
        for name in profile.files:
            self._open(name, self.major)
        for name in official_tables():
            self._view(name)

    def _open(self, name: str, major: int | None) -> None:
        files, unreadable, rows = [], [], 0
        columns: dict[str, str] = {}
        filled: set[str] = set()
        for path in self.profile.files[name]:
            try:
                footer = pq.read_metadata(path)
                if not footer.num_columns:
                    raise ValueError("it has no columns")
                rows += footer.num_rows
                filled |= _filled(footer)
                files.append(path)
            except Exception as error:
                unreadable.append((path, " ".join(str(error).split())))
        if files:
            listed = ", ".join(text_literal(path) for path in files)
            described = self.connection.execute(
                f"DESCRIBE SELECT * FROM read_parquet([{listed}], union_by_name=true, hive_partitioning=false)"
            ).fetchall()
            columns = {row[0]: row[1] for row in described}
        self.sources[name] = SourceTable(
            name,
            tuple(files),
            rows,
            columns,
            source_columns(name, list(columns), major),
            frozenset(filled),
            tuple(unreadable),
        )

    def scan(self, name: str) -> str:
        """SQL: a table as it came, every readable file of it."""
        listed = ", ".join(text_literal(path) for path in self.sources[name].files)
        return f"read_parquet([{listed}], union_by_name=true, hive_partitioning=false)"

    def _view(self, name: str) -> None:
        source = self.sources.get(name)
        parts = []
        for column in official_tables()[name].columns.values():
            found = source.official.get(column.name) if source else None
            if found is None or source is None:
                parts.append(f"CAST(NULL AS {column.duckdb_type}) AS {quoted(column.name)}")
            elif source.columns[found] == column.duckdb_type:
                parts.append(f"{quoted(found)} AS {quoted(column.name)}")
            else:
                parts.append(f"TRY_CAST({quoted(found)} AS {column.duckdb_type}) AS {quoted(column.name)}")
        origin = f" FROM {self.scan(name)}" if source and source.files else " WHERE false"
        self.connection.execute(f"CREATE OR REPLACE VIEW {quoted(name)} AS SELECT {', '.join(parts)}{origin}")

    def has(self, table: str, *columns: str) -> bool:
        """Whether a table has rows and each of the columns may hold a value (by the files' statistics)."""
        source = self.sources.get(table)
        if source is None or not source.rows:
            return False
        return all(
            column in source.official and source.official[column] in source.filled for column in columns
        )

    def value(self, sql: str, parameters: Sequence[Any] = ()) -> Any:
        """First column of the first row, or None."""
        # fetchall: a result that is not read to its end blocks the connection.
        found = self.connection.execute(sql, list(parameters)).fetchall()
        return found[0][0] if found else None

    def rows(self, sql: str) -> list[dict[str, Any]]:
        """All rows as dictionaries; for small answers."""
        cursor = self.connection.execute(sql)
        names = [column[0] for column in cursor.description or ()]
        return [dict(zip(names, row)) for row in cursor.fetchall()]


def _filled(footer: pq.FileMetaData) -> set[str]:
    """Top-level columns with at least one value, as far as the statistics say; without statistics: assumed filled."""
    found: set[str] = set()
    for group in range(footer.num_row_groups):
        rows = footer.row_group(group)
        if not rows.num_rows:
            continue
        for place in range(rows.num_columns):
            column = rows.column(place)
            name = column.path_in_schema.split(".")[0]
            statistics = column.statistics
            empty = (
                statistics is not None
                and statistics.null_count is not None
                and statistics.null_count == column.num_values
            )
            if not empty:
                found.add(name)
    return found
