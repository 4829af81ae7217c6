"""Reading somebody else's SQLite file: no writes, nothing beside it, no code of its schema, no value too big to hold.

The file is opened read-only and immutable (no journal, no -wal or -shm files appear). Only ordinary tables and
their stored columns are read; views, virtual tables, triggers and generated columns never run. Damaged pages and
oversized values cost the rows they hold, not the others.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from types import TracebackType
from typing import Any
from urllib.parse import quote

from explorer.collectors.source import Source
from explorer.collectors.source_content import plain_file
from explorer.model.errors import InputError

MAGIC = b"SQLite format 3\x00"
MAX_VALUE_BYTES = 64 << 20
MAX_TABLES = 10_000
BATCH_ROWS = 8_192

FAILURES = (sqlite3.Error, ValueError, OverflowError)
"""What reading a damaged file raises; ValueError where the damage stands in the text of SQLite's own message"""

_ALLOWED = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ}


@dataclass(slots=True)
class Loss:
    """Rows of a table that could not be read. `rows_read` counts those before the damage."""

    table: str
    reason: str
    rows_read: int


@dataclass(slots=True)
class SqliteFile:
    """An open file. Use as a context manager.

    Raises InputError when it is no SQLite database or its schema cannot be read.
    """

    path: str
    shown: str = ""
    """What errors call the file, where it is unpacked to a temporary one"""
    tables: dict[str, list[str]] = field(default_factory=dict)
    """Stored columns of every ordinary table"""
    ignored: list[str] = field(default_factory=list)
    """Views, virtual tables and triggers, as 'view NAME'"""
    losses: list[Loss] = field(default_factory=list)
    repaired_texts: int = 0
    """Text values that were not UTF-8"""
    _connection: sqlite3.Connection = field(init=False)
    _with_rowid: dict[str, bool] = field(default_factory=dict)

    def __post_init__(self) -> None:
        name = os.path.abspath(self.path)
        try:
            self._connection = sqlite3.connect(
                f"file:{quote(name)}?mode=ro&immutable=1",
                uri=True,
                isolation_level=None,
                check_same_thread=False,
            )
            self._connection.execute("PRAGMA trusted_schema=OFF")
            self._connection.execute("PRAGMA query_only=ON")
            self._connection.execute("PRAGMA cell_size_check=ON")
            self._connection.execute("PRAGMA mmap_size=0")
            self._connection.execute("PRAGMA temp_store=MEMORY")
            self._connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES)
            self._connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
            self._connection.text_factory = self._text
            self._read_schema()
            self._connection.set_authorizer(_authorize)
        except FAILURES as error:
            raise InputError(
                f"{self.shown or self.path} cannot be read as an SQLite database: {error}.",
                "It may be cut off or damaged; export or copy it again.",
            ) from error

    def _text(self, data: bytes) -> str:
        try:
            return data.decode()
        except UnicodeDecodeError:
            self.repaired_texts += 1
            return data.decode("utf-8", "replace")

    def _read_schema(self) -> None:
        for kind, name, sql in self._schema():
            text = str(sql or "").lstrip().upper()
            if kind in ("view", "trigger"):
                self.ignored.append(f"{kind} {name}")
            elif kind == "table" and text.startswith("CREATE VIRTUAL"):
                self.ignored.append(f"virtual table {name}")
            elif kind == "table" and isinstance(name, str):
                try:
                    info = self._connection.execute(f"PRAGMA table_xinfo({_quoted(name)})").fetchall()
                except FAILURES:
                    info = []
                columns = [str(row[1]) for row in info if row[6] == 0]
                if not columns:
                    self.losses.append(Loss(name, "its definition is damaged", 0))
                else:
                    self.tables[name] = columns
                    tail = text[text.rfind(")") :]
                    self._with_rowid[name] = "WITHOUT" not in tail and "rowid" not in map(str.lower, columns)

    def _schema(self) -> list[tuple[Any, Any, Any]]:
        """Kind, name and statement of everything the file defines; of a damaged schema what can be read."""
        text = "SELECT type, name, sql FROM sqlite_master ORDER BY rowid"
        try:
            return self._connection.execute(f"{text} LIMIT {MAX_TABLES}").fetchall()
        except FAILURES as error:
            damage = error
        # Such a file is refused as a whole unless its schema is declared writable (which query_only forbids all the same).
        self._connection.execute("PRAGMA writable_schema=ON")
        found: list[tuple[Any, Any, Any]] = []
        for _ in range(2):
            # The first statement fails at the damage and leaves the definitions before it.
            with suppress(*FAILURES):
                for row in self._connection.execute(text):
                    found.append(row)
                    if len(found) == MAX_TABLES:
                        break
            if found:
                break
        if not any(kind == "table" for kind, _, _ in found):
            raise damage
        self.losses.append(Loss("sqlite_master", str(damage), len(found)))
        return found

    def has(self, table: str, *columns: str) -> bool:
        """Whether the file has the table, with all the columns."""
        return table in self.tables and set(columns) <= set(self.tables[table])

    def batches(self, table: str, columns: Sequence[str] | None = None) -> Iterator[list[tuple[Any, ...]]]:
        """Rows of a table in stored order, some thousand at a time. Columns the table lacks read as None.

        What cannot be read is noted in `losses`; rows behind an oversized value are still read.
        """
        stored = self.tables.get(table)
        if stored is None:
            return
        wanted = list(stored if columns is None else columns)
        known = {name.lower(): name for name in stored}
        parts = [_quoted(known[name.lower()]) if name.lower() in known else "NULL" for name in wanted]
        if self._with_rowid[table]:
            yield from self._by_rowid(table, ", ".join(parts))
        else:
            yield from self._straight(table, f"SELECT {', '.join(parts)} FROM {_quoted(table)}")

    def _by_rowid(self, table: str, columns: str) -> Iterator[list[tuple[Any, ...]]]:
        text = f"SELECT rowid, {columns} FROM {_quoted(table)} WHERE rowid > ? ORDER BY rowid"
        last, count = -(2**63), 0
        while True:
            batch: list[tuple[Any, ...]] = []
            try:
                for row in self._connection.execute(text, (last,)):
                    if row[0] <= last:
                        raise sqlite3.DatabaseError("rows are out of order")
                    last = row[0]
                    batch.append(row[1:])
                    if len(batch) == BATCH_ROWS:
                        count += len(batch)
                        yield batch
                        batch = []
                if batch:
                    yield batch
                return
            except FAILURES as error:
                # The driver reads one row ahead: a good row before the bad one is lost with it, and read again here.
                while (row := self._one(f"{text} LIMIT 1", last)) is not None and row[0] > last:
                    last = row[0]
                    batch.append(row[1:])
                count += len(batch)
                if batch:
                    yield batch
                too_big = isinstance(error, sqlite3.DataError)
                skipped = self._one(
                    f"SELECT rowid FROM {_quoted(table)} WHERE rowid > ? ORDER BY rowid LIMIT 1", last
                )
                self.losses.append(Loss(table, "a value is too big" if too_big else str(error), count))
                if not too_big or skipped is None:
                    return
                last = skipped[0]

    def _one(self, text: str, last: int) -> tuple[Any, ...] | None:
        try:
            row: tuple[Any, ...] | None = self._connection.execute(text, (last,)).fetchone()
        except FAILURES:
            return None
        return row

    def _straight(self, table: str, text: str) -> Iterator[list[tuple[Any, ...]]]:
        count = 0
        try:
            cursor = self._connection.execute(text)
            while batch := cursor.fetchmany(BATCH_ROWS):
                count += len(batch)
                yield batch
        except FAILURES as error:
            self.losses.append(Loss(table, str(error), count))

    def rows(self, table: str, columns: Sequence[str] | None = None) -> Iterator[tuple[Any, ...]]:
        """Rows one by one; see `batches`."""
        for batch in self.batches(table, columns):
            yield from batch

    def records(self, table: str) -> Iterator[dict[str, Any]]:
        """Rows as dictionaries without their nulls."""
        names = self.tables.get(table, [])
        for batch in self.batches(table):
            # Most columns of a wide table are null throughout: they are left out once a batch, not once a row.
            columns = [
                (name, values) for name, values in zip(names, zip(*batch)) if values.count(None) < len(values)
            ]
            keys = [name for name, _ in columns]
            full = all(None not in values for _, values in columns)
            for row in zip(*(values for _, values in columns)) if columns else ((),) * len(batch):
                if full:
                    yield dict(zip(keys, row))
                else:
                    yield {key: value for key, value in zip(keys, row) if value is not None}

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> SqliteFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _authorize(action: int, *_: Any) -> int:
    return sqlite3.SQLITE_OK if action in _ALLOWED else sqlite3.SQLITE_DENY


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def unread_wal_bytes(path: str) -> int:
    """Size of a write-ahead log beside the file, whose rows an immutable open does not see; 0 where there is none."""
    try:
        return os.path.getsize(f"{path}-wal")
    except OSError:
        return 0


@lru_cache(maxsize=8)
def tables_of(source: Source) -> frozenset[str]:
    """Names of a source's ordinary tables. Raises InputError when it is no readable database."""
    with plain_file(source) as (path, _), SqliteFile(path, shown=source.path) as file:
        return frozenset(file.tables)
