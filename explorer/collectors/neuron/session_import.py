"""Imports a directory of Neuron Explorer Parquet profiles into a run, one writer a rank."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field

import duckdb

from explorer.collectors.neuron.layout import Artefacts, ProfileDirectory, find_artefacts
from explorer.collectors.neuron.rank_import import RankImport
from explorer.collectors.neuron.ranks import RankPlan, plan_ranks
from explorer.collectors.neuron.tables import ProfileTables
from explorer.model.errors import InputError
from explorer.store.writer import RunWriter

FORMAT = "neuron_parquet"
MEMORY_LIMIT = "1GB"


@dataclass
class NeuronImport:
    """What an import did: directory of the run, events, ranks, and health of the raw artefacts found beside."""

    directory: str
    events: int = 0
    ranks: list[int] = field(default_factory=list)
    losses: int = 0
    repairs: int = 0


def import_session(
    root: str | os.PathLike[str],
    directory: str | os.PathLike[str],
    *,
    project_root: str = "",
    threads: int | None = None,
    progress: Callable[[str], None] | None = None,
) -> NeuronImport:
    """Import every profile under `root`.

    Args:
        directory: where the run is written (a free sibling where it already holds a finished run).
        project_root: folder that source paths are written relative to.
        progress: called with one line of text per rank.

    Raises InputError when there is no Parquet profile; its remedy says what raw artefacts need.
    """
    artefacts = find_artefacts(os.fspath(root))
    if not artefacts.profiles:
        raise no_profile(artefacts)
    connections: list[duckdb.DuckDBPyConnection] = []
    result = NeuronImport("")
    try:
        profiles = [open_profile(profile, connections, threads) for profile in artefacts.profiles]
        plans = plan_ranks(profiles)
        target = os.fspath(directory)
        for plan in plans:
            if progress:
                progress(f"rank {plan.rank}: {len(plan.devices)} device profiles")
            writer = RunWriter(target, rank=plan.rank)
            target = writer.directory
            import_rank(plan, writer, artefacts, result, project_root=project_root)
            writer.close()
            result.directory = writer.directory
            result.losses += len(writer.manifest.losses)
    finally:
        for connection in connections:
            connection.close()
    return result


def import_rank(
    plan: RankPlan, writer: RunWriter, artefacts: Artefacts, result: NeuronImport, *, project_root: str = ""
) -> None:
    """Import one rank into an open writer (not closed here)."""
    writer.manifest.inputs = [
        {"path": path, "size_bytes": os.path.getsize(path), "format": FORMAT, "table": table}
        for tables in dict.fromkeys(
            [*(device.tables for device in plan.devices), *([plan.system] if plan.system else [])]
        )
        for table, files in tables.profile.files.items()
        for path in files
    ]
    for kind, message, remedy in artefacts.raw.faults():
        writer.health(kind, "warning", 1, message, remedy)
    result.events += RankImport(plan, writer, project_root).run()
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
