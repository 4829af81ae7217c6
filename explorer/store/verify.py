"""Checking a run: every listed part is there, whole and of the documented form, and every reference leads somewhere."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from explorer.model.schema import Table
from explorer.model.tables import TABLES
from explorer.store.manifest import Part, manifest_path
from explorer.store.reader import RunReader

if TYPE_CHECKING:
    import pyarrow as pa

REFERENCES: dict[str, tuple[tuple[str, str, str], ...]] = {
    "events": (
        ("track_id", "tracks", "track_id"),
        ("parent_id", "events", "event_id"),
        ("launch_id", "events", "event_id"),
        ("op_id", "events", "event_id"),
        ("forward_id", "events", "event_id"),
        ("site_id", "sites", "site_id"),
        ("stack_id", "stacks", "stack_id"),
        ("module_id", "modules", "module_id"),
    ),
    "event_sites": (("event_id", "events", "event_id"), ("site_id", "sites", "site_id")),
    "host_states": (
        ("track_id", "tracks", "track_id"),
        ("site_id", "sites", "site_id"),
        ("stack_id", "stacks", "stack_id"),
    ),
    "stacks": (("site_id", "sites", "site_id"),),
    "edges": (("source_id", "events", "event_id"),),
    "collectives": (("event_id", "events", "event_id"),),
    "counters": (("track_id", "tracks", "track_id"),),
}
"""Columns that name a row of another table: (column, table, its column). Ids of ranked tables hold within the rank."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Something wrong in a run. `path` is relative to the run, '' where no single file is meant."""

    severity: str
    rank: int
    table: str
    path: str
    message: str

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def verify(directory: str | os.PathLike[str]) -> list[Problem]:
    """Every problem of a run, damaged files first. Raises InputError where it is no run at all.

    A warning leaves all data readable (a rank that never finished, a file no manifest lists); an error does not.
    """
    reader = RunReader(directory)
    unreadable = [
        Problem("error", rank, "", manifest_path(rank), f"cannot be read: {reason}")
        for rank, reason in reader.unreadable.items()
    ]
    damaged = [problem for rank in reader.ranks for problem in _parts(reader, rank)]
    problems = [*unreadable, *damaged, *(problem for rank in reader.ranks for problem in _rank(reader, rank))]
    broken = {problem.table for problem in damaged}
    if reader.unreadable:
        # Rows of dimensions may stand in the parts of any rank, so what is missing cannot be told.
        broken |= {name for name, spec in TABLES.items() if spec.dimension}
    problems += [
        problem for rank in reader.ranks for problem in _references(reader, rank, broken - {"", None})
    ]
    return [*problems, *_orphans(reader)]


def _parts(reader: RunReader, rank: int) -> Iterator[Problem]:
    for part in reader.manifests[rank].parts:
        if message := _part(reader, part):
            yield Problem("error", rank, part.table, part.path, message)


def _part(reader: RunReader, part: Part) -> str:
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not reader.location.exists(part.path):
        return "is listed in the manifest but does not exist"
    size = reader.location.size(part.path)
    if size != part.size_bytes:
        return f"holds {size:,} bytes; the manifest says {part.size_bytes:,}"
    try:
        data = pq.read_table(reader.location.join(part.path), filesystem=reader.location.filesystem)
    except (OSError, pa.ArrowException) as error:
        return f"cannot be read: {' '.join(str(error).split())}"
    if data.num_rows != part.rows:
        return f"holds {data.num_rows:,} rows; the manifest says {part.rows:,}"
    spec = TABLES.get(part.table)
    return _form(spec, data) if spec else ""


def _form(spec: Table, data: pa.Table) -> str:
    import pyarrow as pa
    import pyarrow.compute as pc

    for column, field in zip(spec.columns, spec.arrow_schema()):
        if column.name not in data.column_names:
            if not column.nullable:
                return f"lacks the column {column.name}"
            continue
        values = data.column(column.name)
        kind = values.type.value_type if pa.types.is_dictionary(values.type) else values.type
        if kind != field.type:
            return f"has {column.name} as {kind}; the schema says {field.type}"
        if values.null_count and not column.nullable:
            return f"has {values.null_count:,} rows without {column.name}"
    if (
        "duration_ns" in data.column_names
        and data.num_rows
        and pc.min(data.column("duration_ns")).as_py() < 0
    ):
        return "holds negative durations"
    return ""


def _rank(reader: RunReader, rank: int) -> Iterator[Problem]:
    if not reader.manifests[rank].finished:
        yield Problem(
            "warning", rank, "", "", "this rank never finished: its last window, if any was open, is lost"
        )


def _references(reader: RunReader, rank: int, broken: set[str]) -> Iterator[Problem]:
    import pyarrow.compute as pc

    for table, references in REFERENCES.items():
        if table in broken or not reader.parts(table, [rank]):
            continue
        data = reader.dataset(table, [rank]).to_table(columns=[column for column, _, _ in references])
        for column, target, key in references:
            values = data.column(column).drop_null()
            if target in broken or not len(values):
                continue
            # Dimension rows may stand in any rank's parts; everything else belongs to its own rank.
            ranks = None if TABLES[target].dimension else [rank]
            known = reader.dataset(target, ranks).to_table(columns=[key]).column(key).unique()
            missing = pc.sum(pc.invert(pc.is_in(values, value_set=known))).as_py()
            if missing:
                yield Problem(
                    "error",
                    rank,
                    table,
                    "",
                    f"{missing:,} rows have a {column} that is not in {target}.{key}",
                )
    for table in ("events", "tracks", "memory_events"):
        spec = TABLES[table]
        if table in broken or len(spec.identity) < 2 or not reader.parts(table, [rank]):
            continue
        key = spec.identity[1]
        values = reader.dataset(table, [rank]).to_table(columns=[key]).column(key)
        if doubled := len(values) - len(values.unique()):
            yield Problem("error", rank, table, "", f"{doubled:,} rows repeat the {key} of another row")


def _orphans(reader: RunReader) -> Iterator[Problem]:
    if not reader.location.is_local:
        return
    listed = {part.path for manifest in reader.manifests.values() for part in manifest.parts}
    # What belongs to a rank whose manifest cannot be read is no orphan.
    unknown = tuple(f"/rank={rank}/" for rank in reader.unreadable)
    root = reader.location.root
    for folder, folders, files in os.walk(root):
        # Roll-ups are made from the parts and named after them; no manifest lists them.
        folders[:] = sorted(name for name in folders if folder != root or name != "rollup")
        for name in sorted(files):
            path = os.path.relpath(os.path.join(folder, name), root).replace(os.sep, "/")
            if name.endswith(".parquet") and path not in listed and not any(rank in path for rank in unknown):
                table = path.split("/rank=")[0]
                yield Problem(
                    "warning", -1, table, path, "is listed by no manifest: left by a process that was ended"
                )
