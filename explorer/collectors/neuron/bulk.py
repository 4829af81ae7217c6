"""Writes events that come as DuckDB results by the million: batches in numpy, one thread reading, one writing."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from explorer.model.tables import TABLES
from explorer.store.part import write_part
from explorer.store.writer import RunWriter

BATCH_ROWS = 524_288
PENDING = 2
"""Batches that may wait for the writer: bounds memory."""

Columns = dict[str, Any]


class BulkWriter:
    """Writes batches of one run as parts in a background thread. `finish` waits for them and lists the parts."""

    def __init__(self, writer: RunWriter) -> None:
        self._writer = writer
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="neuron-write")
        self._waiting: list[Future[Any]] = []
        self.rows: dict[str, int] = {}

    def write(self, table: str, columns: Columns) -> None:
        """Queue one batch; sorted by start time here, so the writer need not."""
        count = len(next(iter(columns.values())))
        if not count:
            return
        self.rows[table] = self.rows.get(table, 0) + count
        key = next((name for name in ("start_ns", "timestamp_ns") if name in columns), None)
        if key is not None:
            columns = _sorted(columns, key)
        while len(self._waiting) >= PENDING:
            self._writer.add(self._waiting.pop(0).result())
        path = self._writer.allocate(table)
        self._waiting.append(
            self._pool.submit(
                write_part,
                self._writer.location,
                path,
                TABLES[table],
                pa.table(columns),
                self._writer.rank,
                presorted=True,
            )
        )

    def finish(self) -> None:
        """Wait for everything queued. Raises what the writing raised."""
        for future in self._waiting:
            self._writer.add(future.result())
        self._waiting = []

    def close(self) -> None:
        """Stop the thread."""
        self._pool.shutdown(wait=True, cancel_futures=True)


def _sorted(columns: Columns, key: str) -> Columns:
    values = np.asarray(columns[key])
    if np.all(values[:-1] <= values[1:]):
        return columns
    order = np.argsort(values, kind="stable")
    places = pa.array(order)
    return {
        name: column[order] if isinstance(column, np.ndarray) else column.take(places)
        for name, column in columns.items()
    }


def batches(connection: duckdb.DuckDBPyConnection, sql: str, work: Callable[[pa.RecordBatch], None]) -> int:
    """Stream a query's rows through `work`, in the order DuckDB gives them. Returns the number of rows."""
    rows = 0
    for batch in connection.sql(sql).to_arrow_reader(BATCH_ROWS):
        rows += batch.num_rows
        work(batch)
    return rows


def integers(batch: pa.RecordBatch, name: str) -> np.ndarray[Any, np.dtype[np.int64]]:
    """A column without nulls as numpy integers."""
    return np.asarray(batch.column(name).to_numpy(zero_copy_only=False)).astype(np.int64, copy=False)


def optional(batch: pa.RecordBatch, name: str, kind: pa.DataType) -> pa.Array:
    """A column as it is, cast to its type in the run."""
    column = batch.column(name)
    return column if column.type == kind else column.cast(kind)
