"""Roll-ups: small tables per rank that whole-job answers read instead of the events.

Each is the answer of a view for one rank, kept in the run under a name made from the rank's parts: a roll-up of other
parts has another name and is not seen. `gathered_rollups` then puts those of all ranks into one file. A run that cannot
be written to is rolled up in memory.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Sequence
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
    "rank_groups": "group_rollup",
    "rank_path": "path_rollup",
}
"""Computed tables by name, each the union over ranks of a view."""

KEPT_VIEWS: frozenset[str] = frozenset(
    (
        "breakdown",
        "collective_times",
        "host_activity",
        "host_breakdown",
        "line_coverage",
        "main_threads",
        "rank_summary",
        "run_health",
        "steps_summary",
        "track_extents",
    )
)
"""Views whose rows of a rank depend on that rank alone: where every rank has a roll-up of one, it stands in for the view."""

PLACE = "place_in_rank"
"""Extra column of a kept view: the number of the row in the answer for its rank."""

_COPIED = ("events", "sites", "steps", "tracks", "host_states", "collectives")
_TYPES = {"INTEGER": "int32", "BIGINT": "int64", "DOUBLE": "float64", "BOOLEAN": "bool", "VARCHAR": "string"}
_FORM = 8
"""Part of every file name: raised when a roll-up view changes."""


def names() -> list[str]:
    """Every roll-up of a rank."""
    return [*ROLLUPS, *sorted(KEPT_VIEWS)]


def table_of(name: str) -> Table:
    """The columns of a roll-up: those of its view."""
    view = all_views()[ROLLUPS.get(name, name)]
    columns = [
        Column(c.name, _TYPES[c.type], c.doc, nullable=True, unit="" if c.unit == "-" else c.unit)
        for c in view.columns
    ]
    if name in KEPT_VIEWS:
        columns.append(Column(PLACE, "int64", "Number of the row in the answer for its rank"))
    return Table(name, f"{view.doc} All ranks, kept in the run once made.", tuple(columns))


def roll_up(reader: RunReader, ranks: Sequence[int] | None = None) -> None:
    """Make the roll-ups of some ranks (None: all) and keep them in the run, where they are not there yet."""
    for rank in reader.ranks if ranks is None else ranks:
        missing = [name for name in names() if not reader.location.exists(_path(reader, name, rank))]
        if missing:
            for name, table in _made(reader, rank, missing).items():
                keep(reader, _path(reader, name, rank), [table])


def rolled_up(reader: RunReader) -> set[int]:
    """The ranks of which all roll-ups, as their parts are now, lie in the run."""
    found = set(reader.ranks)
    for name in names():
        found &= held(reader, name)
    return found


def held(reader: RunReader, name: str) -> set[int]:
    """The ranks of which this roll-up lies in the run. A rank with damaged parts has none: what is left counts."""
    files = set(reader.location.list_folder(f"{FOLDER}/{name}"))
    damaged = {rank for rank, _, _ in reader.damaged}
    return {
        rank
        for rank in reader.ranks
        if rank not in damaged and os.path.basename(_path(reader, name, rank)) in files
    }


def load(engine: Engine, name: str) -> pa.Table:
    """A computed table of ROLLUPS for every rank of the run, made and kept now for ranks that have none."""
    import pyarrow as pa

    reader = engine.reader
    schema = table_of(name).arrow_schema()
    there = held(reader, name)
    parts: list[pa.Table] = []
    for rank in reader.ranks:
        if rank in there:
            parts.append(read(reader, name, rank))
            continue
        table = _made(reader, rank, [name])[name]
        if reader.manifests[rank].finished:
            keep(reader, _path(reader, name, rank), [table])
        parts.append(table)
    return pa.concat_tables(parts) if parts else schema.empty_table()


def load_view(reader: RunReader, name: str) -> pa.Table | None:
    """A view of KEPT_VIEWS for every rank of the run; None unless all ranks have it."""
    import pyarrow as pa

    if not reader.ranks or held(reader, name) != set(reader.ranks):
        return None
    return pa.concat_tables([read(reader, name, rank) for rank in reader.ranks])


def read(reader: RunReader, name: str, rank: int) -> pa.Table:
    """A roll-up of one rank that lies in the run."""
    import pyarrow.parquet as pq

    schema = table_of(name).arrow_schema()
    path = reader.location.join(_path(reader, name, rank))
    table = pq.read_table(path, filesystem=reader.location.filesystem, partitioning=None)
    return table.select(schema.names).cast(schema)


def _made(reader: RunReader, rank: int, wanted: Sequence[str]) -> dict[str, pa.Table]:
    import pyarrow as pa

    from explorer.analysis.engine import Engine
    from explorer.analysis.scratch_engine import scratch_engine

    made: dict[str, pa.Table] = {}
    whole = Engine(reader.of_ranks([rank]), rolled_up=False)
    try:
        with scratch_engine(whole, _COPIED) as engine:
            for name in wanted:
                table = engine.sql(f"SELECT * FROM {ROLLUPS.get(name, name)}").arrow()
                if name in KEPT_VIEWS:
                    table = table.append_column(PLACE, pa.array(range(table.num_rows), pa.int64()))
                made[name] = table.cast(table_of(name).arrow_schema())
    finally:
        whole.close()
    return made


def keep(reader: RunReader, path: str, tables: Iterable[pa.Table]) -> None:
    """Store tables of one schema as one file; a run that cannot be written stays as it is."""
    import pyarrow.parquet as pq

    location = reader.location
    # Another process may make the same one: whoever renames last wins, with the same content.
    temporary = f"{path}.{os.getpid()}.tmp" if location.is_local else path
    tables = iter(tables)
    first = next(tables)
    try:
        location.make_folder(os.path.dirname(path))
        with pq.ParquetWriter(
            location.join(temporary), first.schema, filesystem=location.filesystem, compression="zstd"
        ) as writer:
            writer.write_table(first)
            for table in tables:
                writer.write_table(table)
        if location.is_local:
            os.replace(location.join(temporary), location.join(path))
    except OSError:
        return


def _path(reader: RunReader, name: str, rank: int) -> str:
    return f"{FOLDER}/{name}/rank-{rank}-{fingerprint([reader.manifests[rank]])}.parquet"


def fingerprint(manifests: Iterable[Manifest]) -> str:
    """What the answers for these ranks rest on, as a short text."""
    parts: list[Any] = [
        sorted((part.path, part.rows, part.size_bytes) for part in manifest.parts) for manifest in manifests
    ]
    return hashlib.blake2b(repr((_FORM, parts)).encode(), digest_size=8).hexdigest()
