"""A query's answer: an Arrow table with the ways people and agents want it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


class Result:
    """Rows of an answer.

    Args:
        table: the rows, in order.
        schema: name and version of the JSON document, such as 'neuron-explorer/lines/1'.
        sql: the statement that made them.
        truncated: rows were cut at a cap.
    """

    def __init__(self, table: pa.Table, schema: str, sql: str = "", truncated: bool = False) -> None:
        self.table = table
        self.schema = schema
        self.sql = sql
        self.truncated = truncated

    @property
    def columns(self) -> list[str]:
        return list(self.table.column_names)

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.rows())

    def arrow(self) -> pa.Table:
        """The Arrow table."""
        return self.table

    def df(self) -> pd.DataFrame:
        """A pandas frame."""
        return self.table.to_pandas()

    def rows(self) -> list[dict[str, Any]]:
        """Rows as plain dictionaries."""
        return self.table.to_pylist()

    def to_dict(self) -> dict[str, Any]:
        """The JSON document: schema, columns, rows, whether rows were cut."""
        return {
            "schema": self.schema,
            "columns": self.columns,
            "rows": self.rows(),
            "truncated": self.truncated,
        }

    def to_json(self, indent: int | None = None) -> str:
        """`to_dict()` as JSON text; values JSON has no form for become text."""
        return json.dumps(self.to_dict(), ensure_ascii=False, indent=indent, default=str)
