"""The official Neuron tables of a run as `neuron.<Table>`: every official column, further ones kept, with rank and profile.

Whatever version wrote a profile, a query finds the reference's names and types: columns that a profile lacks are null,
renamed ones are mapped, other types are cast. Tables without rows in this run are typed and empty, as long as the run holds
any Neuron profile.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

import duckdb

from explorer.analysis.quoting import identifier, literal
from explorer.model.neuron_schema import (
    PROFILE_COLUMN,
    RANK_COLUMN,
    TABLE_PREFIX,
    official_tables,
    source_columns,
)
from explorer.store.manifest import Part
from explorer.store.reader import RunReader

if TYPE_CHECKING:
    import pyarrow.dataset as pads

# pyarrow.dataset loads pandas: 0.1 s that only runs with Neuron profiles have to pay, so it is imported where it is used.
SCHEMA = "neuron"
_Signature = tuple[tuple[str, str], ...]


class NeuronRelations:
    """Makes views in schema `neuron` of one connection.

    Args:
        direct: DuckDB reads the files itself; False: it sees them as registered pyarrow datasets only.
    """

    def __init__(self, reader: RunReader, connection: duckdb.DuckDBPyConnection, *, direct: bool) -> None:
        self._reader = reader
        self._connection = connection
        self._direct = direct
        own = [
            name.removeprefix(TABLE_PREFIX) for name in reader.extra_tables if name.startswith(TABLE_PREFIX)
        ]
        self._names = {name.lower(): name for name in (*official_tables(), *own)} if own else {}
        self._made: set[str] = set()
        self._ready = False

    @property
    def names(self) -> list[str]:
        """Every table as 'neuron.<Table>'; [] for a run without Neuron profiles."""
        return [f"{SCHEMA}.{name}" for name in self._names.values()]

    def has(self, name: str) -> bool:
        """Whether 'neuron.<Table>' can be named in this run."""
        return name.startswith(f"{SCHEMA}.") and name.removeprefix(f"{SCHEMA}.").lower() in self._names

    def prepare(self, words: set[str]) -> None:
        """Make the tables among the lower-case words of a statement that names the schema."""
        if SCHEMA in words:
            for word in words & self._names.keys():
                self.make(self._names[word])

    def make_all(self) -> None:
        """Make every table (for statements about the catalogue)."""
        for name in self._names.values():
            self.make(name)

    def make(self, name: str) -> None:
        """Make one table, given as '<Table>' or 'neuron.<Table>'."""
        name = self._names[name.removeprefix(f"{SCHEMA}.").lower()]
        if name in self._made:
            return
        if not self._ready:
            self._connection.execute(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
            self._ready = True
        self._made.add(name)
        # Files of equal columns are read together, if one version named them.
        groups: dict[tuple[_Signature, int | None], list[tuple[int, Part]]] = defaultdict(list)
        for rank, manifest in self._reader.manifests.items():
            described, majors = _described(manifest.attributes), _majors(manifest.attributes)
            for part in manifest.parts:
                if part.table == TABLE_PREFIX + name:
                    columns = described.get((part.profile, name)) or self._footer(part)
                    signature = tuple(sorted(columns.items()))
                    groups[signature, majors.get(part.profile)].append((rank, part))
        selects = [
            self._select(name, place, dict(found), major, parts)
            for place, ((found, major), parts) in enumerate(groups.items())
        ]
        if not selects:
            selects = [self._empty(name)]
        body = " UNION ALL BY NAME ".join(selects)
        self._connection.execute(f"CREATE VIEW {SCHEMA}.{identifier(name)} AS {body}")

    def _footer(self, part: Part) -> dict[str, str]:
        """Columns of a part whose profile the manifest does not describe."""
        location = self._reader.location
        import pyarrow as pa
        import pyarrow.parquet as pq

        schema = pq.read_schema(location.join(part.path), filesystem=location.filesystem)
        empty = pa.Table.from_batches([], schema)
        relation = duckdb.connect(":memory:").from_arrow(empty)
        return dict(zip(relation.columns, (str(kind) for kind in relation.types)))

    def _select(
        self, name: str, place: int, columns: dict[str, str], major: int | None, parts: list[tuple[int, Part]]
    ) -> str:
        official = official_tables().get(name)
        listed: list[str] = []
        if official is None:
            listed = [identifier(column) for column in columns if column not in (RANK_COLUMN, PROFILE_COLUMN)]
        else:
            found = source_columns(name, list(columns), major)
            for column in official.columns.values():
                source = found.get(column.name)
                kind = column.duckdb_type
                if source is None:
                    listed.append(f"CAST(NULL AS {kind}) AS {identifier(column.name)}")
                elif columns[source] == kind:
                    listed.append(f"{identifier(source)} AS {identifier(column.name)}")
                else:
                    listed.append(f"TRY_CAST({identifier(source)} AS {kind}) AS {identifier(column.name)}")
            used = set(found.values()) | {RANK_COLUMN, PROFILE_COLUMN}
            listed += [identifier(column) for column in columns if column not in used]
        own_rank, own_profile = RANK_COLUMN in columns, PROFILE_COLUMN in columns
        origin, rank, profile = self._origin(name, place, parts)
        listed.append(f"{RANK_COLUMN if own_rank else rank} AS {RANK_COLUMN}")
        listed.append(f"{PROFILE_COLUMN if own_profile else profile} AS {PROFILE_COLUMN}")
        return f"SELECT {', '.join(listed)} FROM {origin}"

    def _origin(self, name: str, place: int, parts: list[tuple[int, Part]]) -> tuple[str, str, str]:
        """FROM item of a group of files with equal columns, and the SQL of their rank and profile."""
        location = self._reader.location
        if self._direct:
            paths = [location.join(part.path) for _, part in parts]
            listed = ", ".join(literal(path) for path in paths)
            keys = {(rank, part.profile or "") for rank, part in parts}
            if len(keys) == 1:
                rank, profile = next(iter(keys))
                scan = f"read_parquet([{listed}], hive_partitioning=false)"
                return scan, f"CAST({rank} AS INTEGER)", literal(profile)
            values = ", ".join(
                f"({literal(path)}, CAST({rank} AS INTEGER), {literal(part.profile or '')})"
                for path, (rank, part) in zip(paths, parts)
            )
            scan = f"read_parquet([{listed}], hive_partitioning=false, filename='__file')"
            return (
                f"(SELECT f.* EXCLUDE (__file), m.__rank, m.__profile FROM {scan} AS f"
                f" JOIN (VALUES {values}) AS m(__path, __rank, __profile) ON f.__file = m.__path)",
                "__rank",
                "__profile",
            )
        relation = f"__neuron_{name}_{place}"
        self._connection.register(relation, self._dataset(parts))
        return identifier(relation), "__rank", "__profile"

    def _dataset(self, parts: list[tuple[int, Part]]) -> pads.Dataset:
        """A dataset that knows rank and profile of each file, without access to the file system by DuckDB."""
        import pyarrow as pa
        import pyarrow.dataset as pads
        import pyarrow.fs
        import pyarrow.parquet as pq

        location = self._reader.location
        system: Any = location.filesystem
        if system is None:
            system = pa.fs.LocalFileSystem()
        form = pads.ParquetFileFormat()
        first = pq.read_schema(
            location.join(parts[0][1].path), filesystem=location.filesystem
        ).remove_metadata()
        schema = first.append(pa.field("__rank", pa.int32())).append(pa.field("__profile", pa.string()))
        fragments = [
            form.make_fragment(
                location.join(part.path),
                filesystem=system,
                partition_expression=(pads.field("__rank") == pa.scalar(rank, pa.int32()))
                & (pads.field("__profile") == (part.profile or "")),
            )
            for rank, part in parts
        ]
        return pads.FileSystemDataset(fragments, schema, form, system if location.is_local else None)

    def _empty(self, name: str) -> str:
        columns = [
            f"CAST(NULL AS {column.duckdb_type}) AS {identifier(column.name)}"
            for column in official_tables()[name].columns.values()
        ]
        ends = [f"CAST(NULL AS INTEGER) AS {RANK_COLUMN}", f"CAST(NULL AS VARCHAR) AS {PROFILE_COLUMN}"]
        return f"SELECT {', '.join(columns + ends)} WHERE false"


def _described(attributes: dict[str, Any]) -> dict[tuple[str | None, str], dict[str, str]]:
    found: dict[tuple[str | None, str], dict[str, str]] = {}
    for profile in (attributes.get("neuron") or {}).get("profiles", []):
        for table, columns in profile.get("columns", {}).items():
            found[profile.get("name"), table] = columns
    return found


def _majors(attributes: dict[str, Any]) -> dict[str | None, int]:
    """Major schema version by profile, where it is a number."""
    found: dict[str | None, int] = {}
    for profile in (attributes.get("neuron") or {}).get("profiles", []):
        head = str(profile.get("schema_version", "")).split(".")[0]
        if head.isdigit():
            found[profile.get("name")] = int(head)
    return found
