"""Writing one rank of a run: parts as they come, the manifest last, so a killed process loses at most its open part."""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from types import TracebackType
from typing import Any

import explorer
from explorer.model.errors import UsageError
from explorer.model.schema import Table
from explorer.model.tables import TABLES
from explorer.store.claim import Claim
from explorer.store.location import Location
from explorer.store.manifest import MANIFEST_FOLDER, Manifest, Part, decode, encode, manifest_path
from explorer.store.part import Rows, write_part


class RunWriter:
    """One rank's share of a run.

    `write` adds a part, `commit` publishes all parts so far by replacing the rank's manifest, `close` commits and marks
    the rank finished. As a context manager it closes on success; after an exception what was committed stays and
    nothing more is published. A directory that already holds a finished run of this rank, or one that another writer is
    still writing, is left alone: a sibling NAME-2, NAME-3 ... is used (`directory` says which).

    Raises UsageError when the directory cannot be written.
    """

    def __init__(
        self,
        directory: str | os.PathLike[str],
        *,
        rank: int = 0,
        made_by: str = "import",
        storage_options: dict[str, Any] | None = None,
    ) -> None:
        self.rank = rank
        try:
            self.location, self._claim = _free(Location.of(directory, storage_options).of_run(), rank)
        except OSError as error:
            raise UsageError(
                f"Cannot write the run to {os.fspath(directory)}: {error.strerror or error}.",
                "Choose another directory with -o.",
            ) from error
        self.manifest = Manifest(
            tool_version=explorer.__version__,
            rank=rank,
            made_by=made_by,
            created_ns=time.time_ns(),
        )
        self._numbers: Counter[str] = Counter()
        self._health: list[dict[str, Any]] = []
        self._quarantine: list[dict[str, Any]] = []
        self._token = f"{time.time_ns() & 0xFFFFFFFF:08x}"

    @property
    def directory(self) -> str:
        """Where the run is written: the wanted directory or a free sibling."""
        return self.location.root

    def allocate(self, table: str) -> str:
        """A fresh part path, relative to the run, for a part written elsewhere (another process) with `write_part`."""
        number = self._numbers[table]
        self._numbers[table] += 1
        return f"{table}/rank={self.rank}/{self._token}-{number:05d}.parquet"

    def add(self, part: Part) -> None:
        """List a part written with `write_part`. Empty parts are left out."""
        if part.rows:
            self.manifest.parts.append(part)

    def write(self, table: str | Table, rows: Rows, *, presorted: bool = False) -> Part:
        """Write rows as one new part. See `explorer.store.part.conform` for the accepted forms and errors."""
        spec = TABLES[table] if isinstance(table, str) else table
        part = write_part(self.location, self.allocate(spec.name), spec, rows, self.rank, presorted=presorted)
        self.add(part)
        return part

    def health(
        self,
        kind: str,
        severity: str,
        count: int,
        message: str,
        remedy: str | None = None,
        affects: str | None = None,
    ) -> None:
        """Say what is missing, broken or doubtful."""
        self._health.append(
            {
                "kind": kind,
                "severity": severity,
                "count": count,
                "message": message,
                "remedy": remedy,
                "affects": affects,
            }
        )

    def quarantine(self, row: Any, reason: str, offset: int | None = None) -> None:
        """Keep a source row that cannot become an event."""
        text = row if isinstance(row, str) else json.dumps(row, ensure_ascii=False, default=str)
        self._quarantine.append({"row": text, "reason": reason, "offset": offset})
        if len(self._quarantine) >= 50_000:
            self._flush()

    def _flush(self) -> None:
        if self._quarantine:
            self.write("quarantine", self._quarantine)
            self._quarantine = []
        if self._health:
            self.write("health", self._health)
            self._health = []

    def commit(self) -> None:
        """Publish every part written so far."""
        self._flush()
        self.location.replace(manifest_path(self.rank), encode(self.manifest))

    def close(self) -> None:
        """Publish and mark this rank finished."""
        self.manifest.finished = True
        self.commit()
        self._claim.release()

    def __enter__(self) -> RunWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            self._claim.release()


def _free(wanted: Location, rank: int) -> tuple[Location, Claim]:
    """The wanted location, or the first sibling without a finished manifest of this rank and without another writer."""
    candidate, number = wanted, 2
    while True:
        if not _finished(candidate, rank):
            candidate.make_folder(MANIFEST_FOLDER)
            claim = Claim.take(candidate, rank)
            # Another writer may have finished between the look and the claim.
            if claim is not None and not _finished(candidate, rank):
                return candidate, claim
            if claim is not None:
                claim.release()
        candidate = wanted.sibling(number)
        number += 1


def _finished(location: Location, rank: int) -> bool:
    try:
        return location.exists(manifest_path(rank)) and decode(location.read(manifest_path(rank))).finished
    except Exception:
        # Someone else's file of that name is not ours to overwrite either.
        return True
