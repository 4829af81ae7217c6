"""The roll-ups of all ranks, and the small tables of the run, each in one file: opening a run of a thousand ranks then
reads a few files, not one a rank and table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from explorer.analysis.rollup import FOLDER, fingerprint, keep, names, read, rolled_up
from explorer.store.reader import RunReader

if TYPE_CHECKING:
    import pyarrow as pa

FEWEST_RANKS = 8
"""Below, a file per rank is read as fast."""

SMALL_TABLES = ("tracks", "steps", "sites", "stacks", "modules", "devices", "health")
"""Tables of which every rank has a few rows, read by nearly every answer."""

_ROWS_TOGETHER = 50_000


def gather(reader: RunReader) -> None:
    """Write the files that `gathered` names, once every rank of the run has its roll-ups. Those of fewer ranks, or of
    other parts, are removed."""
    if len(reader.ranks) < FEWEST_RANKS or rolled_up(reader) != set(reader.ranks):
        return
    for name in names():
        path = _path(reader, name)
        if not reader.location.exists(path):
            keep(reader, path, _together(reader, name))
            _remove_others(reader, name)
    _gather_tables(reader)


def gathered(reader: RunReader, name: str) -> str | None:
    """The file of a roll-up or small table for exactly the ranks of this reader, relative to the run; None where there
    is none."""
    if len(reader.ranks) < FEWEST_RANKS or reader.damaged:
        return None
    path = _path(reader, name)
    return path if reader.location.exists(path) else None


def _gather_tables(reader: RunReader) -> None:
    from explorer.analysis.engine import Engine

    missing = [name for name in SMALL_TABLES if not reader.location.exists(_path(reader, name))]
    if not missing:
        return
    engine = Engine(reader, rolled_up=False)
    try:
        for name in missing:
            keep(reader, _path(reader, name), [engine.sql(f"SELECT * FROM {name}").arrow()])
            _remove_others(reader, name)
    finally:
        engine.close()


def _together(reader: RunReader, name: str) -> Iterator[pa.Table]:
    """The ranks' rows in order of their ranks, in pieces worth a row group."""
    import pyarrow as pa

    waiting: list[pa.Table] = []
    for rank in reader.ranks:
        waiting.append(read(reader, name, rank))
        if sum(table.num_rows for table in waiting) >= _ROWS_TOGETHER:
            yield pa.concat_tables(waiting)
            waiting = []
    if waiting:
        yield pa.concat_tables(waiting)


def _path(reader: RunReader, name: str) -> str:
    return f"{FOLDER}/{name}/all-{fingerprint(reader.manifests.values())}.parquet"


def _remove_others(reader: RunReader, name: str) -> None:
    kept = _path(reader, name).rsplit("/", 1)[-1]
    for other in reader.location.list_folder(f"{FOLDER}/{name}"):
        if other.startswith("all-") and other != kept:
            reader.location.remove(f"{FOLDER}/{name}/{other}")
