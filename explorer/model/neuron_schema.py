"""The official tables of AWS Neuron Explorer profiles, schema 7.4.0: names, columns, types, units.

Source: the public profile schema reference of the AWS Neuron SDK (tools/neuron-explorer/profile-schema-reference, SDK 2.31),
read into `neuron_schema_7_4_0.json` as facts; the three API-only tables are left out. Other versions are read through it:
a major version may remove, rename or retype columns, so nothing here is required of an input.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

SCHEMA_OF_REFERENCE = "7.4.0"

TABLE_PREFIX = "neuron/"
"""Tables of a run that hold official Neuron tables are named 'neuron/<Table>'."""

PROFILE_COLUMN = "profile"
RANK_COLUMN = "rank"

DUCKDB_TYPES = {
    "int32": "INTEGER",
    "int64": "BIGINT",
    "float": "DOUBLE",
    "double": "DOUBLE",
    "boolean": "BOOLEAN",
    "string": "VARCHAR",
    "array<int64>": "BIGINT[]",
    "array<string>": "VARCHAR[]",
}


@dataclass(frozen=True, slots=True)
class NeuronColumn:
    """One official column. `type` as the reference names it (int64, float, array<string> ...), `unit` '' where none."""

    name: str
    type: str
    unit: str
    required: bool

    @property
    def duckdb_type(self) -> str:
        return DUCKDB_TYPES[self.type]


@dataclass(frozen=True, slots=True)
class NeuronTable:
    """One official table; `kind` is timeline, time_series, summary, lookup, hierarchy, metadata or dependency_edges."""

    name: str
    kind: str
    columns: dict[str, NeuronColumn]


@cache
def official_tables() -> dict[str, NeuronTable]:
    """Every official table by name, in the reference's order."""
    text = (files("explorer.model") / "neuron_schema_7_4_0.json").read_text(encoding="utf-8")
    tables: dict[str, NeuronTable] = {}
    for name, table in json.loads(text)["tables"].items():
        columns = {}
        for column, (kind, *unit) in table["columns"].items():
            columns[column] = NeuronColumn(
                column, kind.rstrip("?"), unit[0] if unit else "", not kind.endswith("?")
            )
        tables[name] = NeuronTable(name, table["kind"], columns)
    return tables


@cache
def enums() -> dict[str, list[str]]:
    """The reference's closed sets of words, by name."""
    text = (files("explorer.model") / "neuron_schema_7_4_0.json").read_text(encoding="utf-8")
    return dict(json.loads(text)["enums"])


RENAMES: dict[int, dict[str, dict[str, str]]] = {}
"""Per major version and table: the version's column name to the name of 7.4.0. No list of renames is published; add here what a
real profile of that version shows. Columns that differ only in a unit suffix or in letter case are recognised without it."""


def source_columns(table: str, present: list[str], major: int | None) -> dict[str, str]:
    """Which of the `present` columns holds which official column: {official name: present name}.

    Same name first, then the version's rename map, then a column that differs only in case, underscores or a unit suffix,
    where exactly one such candidate exists. Official columns without a source are left out.
    """
    official = official_tables().get(table)
    if official is None:
        return {}
    found = {name: name for name in official.columns if name in present}
    renames = RENAMES.get(major or 0, {}).get(table, {})
    for new, old in renames.items():
        if old in official.columns and old not in found and new in present:
            found[old] = new
    used = set(found.values())
    spare = [name for name in present if name not in used]
    for name in official.columns:
        if name in found:
            continue
        candidates = [other for other in spare if _alike(name, other)]
        if len(candidates) == 1:
            found[name] = candidates[0]
            spare.remove(candidates[0])
    return found


def _alike(official: str, other: str) -> bool:
    left, right = (text.replace("_", "").lower() for text in (official, other))
    if left == right:
        return True
    shorter, longer = sorted((left, right), key=len)
    return any(longer == shorter + suffix.replace("_", "") for suffix in ("_ns", "_bytes"))


def table_name(name: str) -> str:
    """The official name of a table written in another case; unknown names stay as they are."""
    official = {known.lower(): known for known in official_tables()}
    return official.get(name.replace("_", "").lower(), name)
