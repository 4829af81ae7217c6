"""How a table of the run is described: columns with type, unit and meaning, and the Arrow schema made from them."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

SCHEMA_VERSION = 1
"""Version of the run format. Readers refuse runs of a newer one."""

METADATA_KEY = b"neuron-explorer"
"""Key of the JSON document (table, schema version, column docs) in every Parquet file's metadata."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column: `type` is an Arrow type name (int32, int64, float64, bool, string), `unit` is empty where it has none."""

    name: str
    type: str
    doc: str
    nullable: bool = False
    unit: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """One table of the run.

    `identity` names the columns that make a row unique over the whole run (empty: rows have no identity);
    `sort_by` the order inside a part; `dimension` tables hold content-hashed ids that windows and ranks repeat,
    so readers see them through a deduplicated view of the same name.
    """

    name: str
    doc: str
    columns: tuple[Column, ...]
    identity: tuple[str, ...] = ()
    sort_by: tuple[str, ...] = ()
    dimension: bool = False
    names: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", tuple(column.name for column in self.columns))

    def column(self, name: str) -> Column:
        """The column called `name`. Raises KeyError when there is none."""
        for column in self.columns:
            if column.name == name:
                return column
        raise KeyError(f"table {self.name} has no column {name}")

    def arrow_schema(self) -> pa.Schema:
        """The Arrow schema, with the documentation in its metadata."""
        import pyarrow as pa

        types = {
            "int32": pa.int32(),
            "int64": pa.int64(),
            "float64": pa.float64(),
            "bool": pa.bool_(),
            "string": pa.string(),
        }
        fields = [pa.field(column.name, types[column.type], column.nullable) for column in self.columns]
        return pa.schema(fields, metadata={METADATA_KEY: self._metadata()})

    def _metadata(self) -> bytes:
        columns = {c.name: {"doc": c.doc, "unit": c.unit, "nullable": c.nullable} for c in self.columns}
        document = {
            "table": self.name,
            "schema_version": SCHEMA_VERSION,
            "doc": self.doc,
            "columns": columns,
        }
        return json.dumps(document, ensure_ascii=False, sort_keys=True).encode()
