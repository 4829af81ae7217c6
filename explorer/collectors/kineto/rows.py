"""A chunk of events with every field in its column: the text decoded, the arguments extracted."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pyarrow as pa

from explorer.collectors.kineto.decode import decode
from explorer.collectors.kineto.splitter import Chunk

if TYPE_CHECKING:
    import duckdb


@cache
def _connection() -> duckdb.DuckDBPyConnection:
    import duckdb

    connection = duckdb.connect()
    connection.execute("SET threads = 1")
    connection.execute("SET enable_external_access = false")
    return connection


@cache
def _query() -> str:
    return Path(__file__).with_name("arguments.sql").read_text()


def read_rows(chunk: Chunk, first_row: int) -> pa.Table:
    """The events of a chunk, numbered from `first_row`, with the columns of `decode` and of arguments.sql."""
    decoded = decode(chunk.text)
    numbers = pa.array(np.arange(first_row, first_row + decoded.num_rows, dtype=np.int64))
    decoded = decoded.append_column("row", numbers)
    extracted = _arguments(decoded)
    for name in extracted.column_names:
        if name != "row":
            decoded = decoded.append_column(name, extracted.column(name).combine_chunks())
    return decoded.drop_columns(["rest"])


def _arguments(decoded: pa.Table) -> pa.Table:
    import duckdb

    connection = _connection()
    connection.register("rows", decoded.select(["row", "ph", "cat", "id", "args", "rest"]))
    try:
        return connection.sql(_query()).to_arrow_table()
    except duckdb.Error:
        # One document that DuckDB's JSON reader refuses must not cost the chunk: such args are kept as one text.
        mended = [_as_text(text) for text in decoded.column("args").to_pylist()]
        connection.register(
            "rows",
            decoded.select(["row", "ph", "cat", "id", "rest"]).append_column(
                "args", pa.array(mended, pa.string())
            ),
        )
        return connection.sql(_query()).to_arrow_table()
    finally:
        connection.unregister("rows")


def _as_text(text: str | None) -> str | None:
    if text is None:
        return None
    try:
        found: Any = _connection().execute("SELECT json_valid(?)", [text]).fetchone()
        valid = bool(found and found[0])
    except Exception:
        valid = False
    return text if valid else msgspec.json.encode({"args": text}).decode()
