"""Imports directories of Neuron Explorer Parquet profiles into a run, one writer a rank."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import duckdb

from explorer.collectors.neuron.layout import Artefacts, ProfileDirectory, find_artefacts, is_profile
from explorer.collectors.neuron.rank_import import RankImport
from explorer.collectors.neuron.ranks import RankPlan, plan_ranks
from explorer.collectors.neuron.tables import ProfileTables
from explorer.model.errors import InputError
from explorer.store.writer import RunWriter

NAME = "neuron_parquet"
MEMORY_LIMIT = "1GB"


@dataclass
class SessionImport:
    """What an import did."""

    directory: str = ""
    events: int = 0
    rows: int = 0
    lost: int = 0
    size_bytes: int = 0
    ranks: list[int] = field(default_factory=list)


def session_roots(paths: Iterable[str | os.PathLike[str]]) -> list[str] | None:
    """The directories to import where every path is a Neuron profile, session or a file of one; else None.

    A directory with raw Neuron artefacts and nothing else that could be read counts: its import explains what is missing.
    """
    roots: list[str] = []
    for path in (os.fspath(each) for each in paths):
        if os.path.isfile(path) and path.endswith(".parquet"):
            folder = os.path.dirname(os.path.abspath(path))
            if not is_profile([os.path.basename(path)]):
                return None
            roots.append(folder)
        elif os.path.isdir(path) and not os.path.isdir(os.path.join(path, "manifests")):
            found = find_artefacts(path)
            if not found.profiles and not (found.raw and not found.raw.framework):
                return None
            roots.append(path)
        else:
            return None
    return list(dict.fromkeys(roots)) or None


def import_session(
    roots: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    directory: str | os.PathLike[str],
    *,
    project_root: str = "",
    threads: int | None = None,
    rank: int | None = None,
    progress: Callable[[int, int | None], None] | None = None,
) -> SessionImport:
    """Import every profile under `roots`.

    Args:
        directory: where the run is written (a free sibling where it already holds a finished run).
        project_root: folder that source paths are written relative to.
        rank: number of the only rank, instead of what the profiles say.
        progress: called with bytes done and bytes in all.

    Raises InputError when there is no Parquet profile; its remedy says what raw artefacts need.
    """
    listed = [roots] if isinstance(roots, str | os.PathLike) else list(roots)
    found = [find_artefacts(os.fspath(root)) for root in listed]
    profiles = [profile for artefacts in found for profile in artefacts.profiles]
    if not profiles:
        raise no_profile(found[0])
    connections: list[duckdb.DuckDBPyConnection] = []
    result = SessionImport(size_bytes=sum(_size(profile) for profile in profiles))
    done = 0
    try:
        opened = [open_profile(profile, connections, threads) for profile in profiles]
        plans = plan_ranks(opened)
        if rank is not None:
            if len(plans) > 1:
                raise InputError(
                    f"One rank was named, but the session has {len(plans)}.", "Leave the rank out."
                )
            plans[0].rank, plans[0].how = rank, "given"
        target = os.fspath(directory)
        for plan in plans:
            writer = RunWriter(target, rank=plan.rank)
            import_rank(plan, writer, found, result, project_root=project_root)
            writer.close()
            target = result.directory = writer.directory
            done += sum(_size(device.tables.profile) for device in plan.devices)
            if progress:
                progress(min(done, result.size_bytes), result.size_bytes)
    finally:
        for connection in connections:
            connection.close()
    return result


def import_rank(
    plan: RankPlan,
    writer: RunWriter,
    found: Sequence[Artefacts],
    result: SessionImport,
    *,
    project_root: str = "",
) -> None:
    """Import one rank into an open writer (not closed here)."""
    used = dict.fromkeys(
        [*(device.tables for device in plan.devices), *([plan.system] if plan.system else [])]
    )
    writer.manifest.inputs = [
        {"path": path, "size_bytes": os.path.getsize(path), "format": NAME, "table": table}
        for tables in used
        for table, files in tables.profile.files.items()
        for path in files
    ]
    for artefacts in found:
        for kind, message, remedy in artefacts.raw.faults():
            writer.health(kind, "warning", 1, message, remedy)
        if artefacts.raw.framework and not result.ranks:
            count = len(artefacts.raw.framework)
            writer.health(
                "neuron_framework_traces",
                "info",
                count,
                f"{count} traces of the framework lie beside the profiles (the first: {artefacts.raw.framework[0]}); they were not read with them.",
                "Import them by themselves for their ops and annotations.",
            )
    result.events += RankImport(plan, writer, project_root).run()
    result.rows += writer.manifest.counts["source_total"]
    result.lost += len(writer.manifest.losses) + writer.manifest.counts["quarantine"]
    result.ranks.append(plan.rank)


def open_profile(
    profile: ProfileDirectory, connections: list[duckdb.DuckDBPyConnection], threads: int | None
) -> ProfileTables:
    """A profile's tables on a connection of their own (views of different profiles share names)."""
    connection = duckdb.connect(":memory:")
    connections.append(connection)
    connection.execute(f"SET memory_limit='{MEMORY_LIMIT}'")
    if threads:
        connection.execute(f"SET threads={int(threads)}")
    return ProfileTables(connection, profile)


def no_profile(artefacts: Artefacts) -> InputError:
    """The error for a directory without Parquet profiles: says what lies there and what it needs."""
    raw = artefacts.raw
    if not raw:
        return InputError(
            f"{artefacts.root} holds no Neuron Explorer profile.",
            "Give the directory that holds <name>@latest/ with files such as Instruction.parquet.",
        )
    found = f"{len(raw.ntff)} .ntff, {len(raw.neff)} .neff, {len(raw.runtime)} .pb"
    faults = " ".join(message for _, message, _ in raw.faults())
    return InputError(
        f"{artefacts.root} holds raw Neuron artefacts ({found}) that only AWS's neuron-explorer can read. {faults}",
        "Process them first on a machine with the Neuron tools: /opt/aws/neuron/bin/neuron-explorer view -d DIR "
        "--ingest-only --display-name NAME --data-path OUT, then import OUT.",
    )


def _size(profile: ProfileDirectory) -> int:
    return sum(os.path.getsize(path) for files in profile.files.values() for path in files)
