"""Roll-ups: small tables per rank that whole-job answers read instead of the events.

Each is the answer of a view for one rank, kept in the run under a name made from the rank's parts: a roll-up of other
parts has another name and is not seen. A run that cannot be written to is rolled up in memory.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from explorer.analysis.view import all_views
from explorer.model.schema import Column, Table
from explorer.store.manifest import Manifest
from explorer.store.reader import RunReader

if TYPE_CHECKING:
    import pyarrow as pa

    from explorer.analysis.engine import Engine

FOLDER = "rollup"

ROLLUPS: dict[str, str] = {
    "rank_steps": "step_rollup",
    "rank_collectives": "collective_rollup",
    "rank_path": "path_rollup",
}
"""Computed tables by name, each the union over ranks of a view."""

_TYPES = {"INTEGER": "int32", "BIGINT": "int64", "DOUBLE": "float64", "BOOLEAN": "bool", "VARCHAR": "string"}
_FORM = 5
"""Part of every file name: raised when a roll-up view changes."""


def table_of(name: str) -> Table:
    """The columns of a roll-up: those of its view."""
    view = all_views()[ROLLUPS[name]]
    columns = tuple(
        Column(c.name, _TYPES[c.type], c.doc, nullable=True, unit="" if c.unit == "-" else c.unit)
        for c in view.columns
    )
    return Table(name, f"{view.doc} All ranks, kept in the run once made.", columns)


def roll_up(reader: RunReader, ranks: Sequence[int] | None = None) -> None:
    """Make the roll-ups of some ranks (None: all) and keep them in the run, where they are not there yet."""
    for rank in reader.ranks if ranks is None else ranks:
        missing = [name for name in ROLLUPS if not reader.location.exists(_path(reader, name, rank))]
        if missing:
            for name, table in _made(reader, rank, missing).items():
                _keep(reader, name, rank, table)


def is_rolled_up(reader: RunReader, rank: int) -> bool:
    """Whether all roll-ups of a rank, as its parts are now, lie in the run."""
    return all(reader.location.exists(_path(reader, name, rank)) for name in ROLLUPS)


def load(engine: Engine, name: str) -> pa.Table:
    """A roll-up of every rank of the run, made and kept now for ranks that have none."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    reader = engine.reader
    schema = table_of(name).arrow_schema()
    parts: list[pa.Table] = []
    for rank in reader.ranks:
        path = _path(reader, name, rank)
        if reader.location.exists(path):
            full = reader.location.join(path)
            parts.append(pq.read_table(full, filesystem=reader.location.filesystem, partitioning=None))
            continue
        table = _made(reader, rank, [name])[name]
        if reader.manifests[rank].finished:
            _keep(reader, name, rank, table)
        parts.append(table)
    return (
        pa.concat_tables([part.select(schema.names).cast(schema) for part in parts])
        if parts
        else schema.empty_table()
    )


def _made(reader: RunReader, rank: int, names: Sequence[str]) -> dict[str, pa.Table]:
    from explorer.analysis.engine import Engine

    engine = Engine(reader.of_ranks([rank]))
    try:
        return {
            name: engine.sql(f"SELECT * FROM {ROLLUPS[name]}").arrow().cast(table_of(name).arrow_schema())
            for name in names
        }
    finally:
        engine.close()


def _keep(reader: RunReader, name: str, rank: int, table: pa.Table) -> None:
    """Store a roll-up; a run that cannot be written stays as it is."""
    from explorer.store.part import write_parquet

    path = _path(reader, name, rank)
    location = reader.location
    try:
        location.make_folder(os.path.dirname(path))
        if location.is_local:
            # Another process may make the same one: whoever renames last wins, with the same content.
            temporary = f"{path}.{os.getpid()}.tmp"
            write_parquet(location, temporary, table)
            os.replace(location.join(temporary), location.join(path))
        else:
            write_parquet(location, path, table)
    except OSError:
        return


def _path(reader: RunReader, name: str, rank: int) -> str:
    return f"{FOLDER}/{name}/rank={rank}/{_fingerprint(reader.manifests[rank])}.parquet"


def _fingerprint(manifest: Manifest) -> str:
    parts: list[Any] = sorted((part.path, part.rows) for part in manifest.parts)
    return hashlib.blake2b(repr((_FORM, parts)).encode(), digest_size=8).hexdigest()
