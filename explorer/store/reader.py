"""Opening a run: manifests first, explicit file lists from them, absent tables as typed empty ones."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from copy import copy
from functools import cached_property
from typing import TYPE_CHECKING, Any

import msgspec

from explorer.model.errors import InputError, UsageError
from explorer.model.schema import SCHEMA_VERSION
from explorer.model.tables import TABLES
from explorer.store.location import Location
from explorer.store.manifest import MANIFEST_FOLDER, Manifest, Part, decode, manifest_path

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.dataset as pads

_MANIFEST_NAME = re.compile(r"rank-(0|[1-9][0-9]*)\.json")


def is_run(directory: str | os.PathLike[str], storage_options: dict[str, Any] | None = None) -> bool:
    """Whether a directory holds at least one rank's manifest."""
    location = Location.of(directory, storage_options)
    return any(_MANIFEST_NAME.fullmatch(name) for name in location.list_folder(MANIFEST_FOLDER))


class RunReader:
    """The parts of a run, or of some of its ranks.

    A rank whose manifest cannot be read is left out, and `unreadable` says why; the other ranks stand for themselves.

    Raises InputError when it is no run, when no manifest of the wanted ranks can be read, or when it was written by a newer
    version; UsageError for a rank that it does not hold.
    """

    def __init__(
        self,
        directory: str | os.PathLike[str],
        storage_options: dict[str, Any] | None = None,
        ranks: Iterable[int] | None = None,
    ) -> None:
        self.location = Location.of(directory, storage_options).of_run()
        wanted = None if ranks is None else list(ranks)
        self.unreadable: dict[int, str] = {}
        """What is wrong with the manifest, by rank"""
        self.of_some_ranks = wanted is not None
        self.manifests: dict[int, Manifest] = self._load(wanted)
        if wanted is not None:
            self._keep(wanted)

    def _keep(self, ranks: list[int]) -> None:
        for rank in ranks:
            if rank in self.unreadable:
                raise self._no_manifest(rank)
            if rank not in self.manifests:
                held = f"ranks {min(self.manifests)} to {max(self.manifests)}"
                if len(self.manifests) == 1:
                    held = f"rank {min(self.manifests)} only"
                raise UsageError(f"{self.location.root} has no rank {rank}; it holds {held}.")
        self.manifests = {rank: self.manifests[rank] for rank in sorted(ranks)}
        self.unreadable, self.of_some_ranks = {}, True

    def _no_manifest(self, rank: int) -> InputError:
        path = self.location.join(manifest_path(rank))
        return InputError(f"The manifest {path} cannot be read: {self.unreadable[rank]}.")

    def of_ranks(self, ranks: Iterable[int]) -> RunReader:
        """The same run with some of its ranks only, without reading the manifests again."""
        other = copy(self)
        other.__dict__.pop("extra_tables", None)
        other.__dict__.pop("_damage", None)
        other._keep(list(ranks))
        return other

    def _load(self, wanted: list[int] | None) -> dict[int, Manifest]:
        """The manifests of the wanted ranks, or of all where one of those is not there."""
        names = [n for n in self.location.list_folder(MANIFEST_FOLDER) if _MANIFEST_NAME.fullmatch(n)]
        if wanted is not None and not {f"rank-{rank}.json" for rank in wanted} - set(names):
            names = [f"rank-{rank}.json" for rank in wanted]
        if not names and wanted != []:
            what = "is not a run (it has no manifests)" if self.location.exists() else "does not exist"
            raise InputError(
                f"{self.location.root} {what}.",
                "Record or import one first: neuron-explorer import TRACE -o RUN",
            )
        manifests: dict[int, Manifest] = {}
        for name in names:
            rank = int(name.removeprefix("rank-").removesuffix(".json"))
            try:
                manifest = decode(self.location.read(f"{MANIFEST_FOLDER}/{name}"))
            except (msgspec.MsgspecError, ValueError, RecursionError, OSError) as error:
                self.unreadable[rank] = " ".join(str(error).split()).rstrip(".")
                continue
            if manifest.schema_version > SCHEMA_VERSION:
                raise InputError(
                    f"{self.location.root} has schema version {manifest.schema_version}; this program reads up to {SCHEMA_VERSION}.",
                    "Upgrade neuron-explorer.",
                )
            if outside := next((part.path for part in manifest.parts if not _is_inside(part.path)), None):
                self.unreadable[rank] = f"it names a file outside the run: {outside}"
                continue
            if manifest.rank != rank:
                # An empty object is a manifest of rank 0 by its defaults: it must not stand for the rank 0 that is there.
                self.unreadable[rank] = f"it says that it is of rank {manifest.rank}"
                continue
            manifests[rank] = manifest
        if self.unreadable and not manifests:
            raise self._no_manifest(min(self.unreadable))
        return dict(sorted(manifests.items()))

    @property
    def directory(self) -> str:
        return self.location.root

    @property
    def ranks(self) -> list[int]:
        return list(self.manifests)

    def parts(self, table: str, ranks: Iterable[int] | None = None) -> list[Part]:
        """Readable parts of a table that hold rows, by rank, in writing order. `damaged` has the others."""
        wanted = self.ranks if ranks is None else list(ranks)
        return [
            part
            for rank in wanted
            if rank in self.manifests
            for part in self.manifests[rank].parts
            if part.table == table and part.path not in self._damage
        ]

    @property
    def damaged(self) -> list[tuple[int, Part, str]]:
        """(rank, part, what is wrong) of parts that are left out: missing, or not as long as they were written."""
        return [
            (rank, part, self._damage[part.path])
            for rank, manifest in self.manifests.items()
            for part in manifest.parts
            if part.path in self._damage
        ]

    @cached_property
    def _damage(self) -> dict[str, str]:
        if not self.location.is_local:
            # An object store holds an object whole or not at all, and asking for each costs a request.
            return {}
        found = {}
        for manifest in self.manifests.values():
            for part in manifest.parts:
                try:
                    size = self.location.size(part.path)
                    whole = size == part.size_bytes or _has_end(self.location.join(part.path))
                except (OSError, ValueError):
                    found[part.path] = "is missing"
                    continue
                if not whole:
                    found[part.path] = f"holds {size:,} of {part.size_bytes:,} bytes"
        return found

    @cached_property
    def extra_tables(self) -> list[str]:
        """Tables outside the schema, as 'neuron/<Table>' or unknown names."""
        names = {part.table for manifest in self.manifests.values() for part in manifest.parts}
        return sorted(names - set(TABLES))

    def files(self, table: str, ranks: Iterable[int] | None = None) -> list[str]:
        """Paths of a table's parts: absolute for a local run, else inside the run's filesystem."""
        return [self.location.join(part.path) for part in self.parts(table, ranks)]

    def dataset(self, table: str, ranks: Iterable[int] | None = None) -> pads.Dataset:
        """A pyarrow dataset over explicit files; typed and empty where the run has no such table.

        Columns that a newer writer added are kept; columns an older one lacked read as null.
        """
        import pyarrow as pa
        import pyarrow.dataset as pads
        import pyarrow.parquet as pq

        spec = TABLES.get(table)
        files = self.files(table, ranks)
        if not files:
            if spec is None:
                raise KeyError(table)
            return pads.dataset(pa.Table.from_batches([], spec.arrow_schema()))
        known = [spec.arrow_schema()] if spec else []
        # Parts of one table may differ in columns; one footer per distinct writer is not knowable, so read them all.
        schemas = [pq.read_schema(path, filesystem=self.location.filesystem) for path in files]
        schema = pa.unify_schemas([*known, *schemas], promote_options="permissive")
        return pads.dataset(files, schema=schema, filesystem=self.location.filesystem, format="parquet")

    def read(
        self, table: str, columns: list[str] | None = None, ranks: Iterable[int] | None = None
    ) -> pa.Table:
        """A table as Arrow; dimension tables are deduplicated."""
        data = self._readable(table, columns, ranks)
        spec = TABLES.get(table)
        if spec is None or not spec.dimension or (columns and not set(spec.identity) <= set(columns)):
            return data
        first = (
            data.append_column("__row", [list(range(data.num_rows))])
            .group_by(list(spec.identity))
            .aggregate([("__row", "min")])
        )
        return data.take(first.column("__row_min")).sort_by([(key, "ascending") for key in spec.sort_by])

    def _readable(self, table: str, columns: list[str] | None, ranks: Iterable[int] | None) -> pa.Table:
        import pyarrow as pa

        try:
            return self.dataset(table, ranks).to_table(columns=columns)
        except (OSError, pa.ArrowException) as error:
            raise damaged_file(self.location.root, f"{table}: {error}") from error


def damaged_file(directory: str, reason: str) -> InputError:
    """The error for a part that has its length but not its content."""
    first = " ".join(reason.split())
    return InputError(
        f"A file of {directory} is damaged ({first[:200]}).",
        f"What else is: neuron-explorer verify {directory}",
    )


def _is_inside(path: str) -> bool:
    return not os.path.isabs(path) and "\\" not in path and ".." not in path.split("/")


def _has_end(path: str) -> bool:
    """Whether a file ends as a Parquet file does: one that was written anew is as good as its original."""
    with open(path, "rb") as file:
        file.seek(0, os.SEEK_END)
        file.seek(-min(4, file.tell()), os.SEEK_END)
        return file.read() == b"PAR1"
