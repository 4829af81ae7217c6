"""The manifest of one rank: what made the run, which parts exist, what was lost and repaired, what profiling cost."""

from __future__ import annotations

from typing import Any

import msgspec

from explorer.model.schema import SCHEMA_VERSION
from explorer.model.utf8_text import utf8_value

MANIFEST_FOLDER = "manifests"


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """One Parquet file of one table. `path` is relative to the run's directory."""

    table: str
    path: str
    rows: int
    size_bytes: int
    start_ns: int | None = None
    end_ns: int | None = None
    profile: str | None = None
    """Official Neuron tables: name of the profile this part came from"""


class Manifest(msgspec.Struct, kw_only=True):
    """`manifests/rank-<r>.json`. A part exists when a manifest lists it."""

    schema_version: int = SCHEMA_VERSION
    tool_version: str = ""
    rank: int = 0
    world_size: int | None = None
    made_by: str = ""
    """capture, import or generator"""
    created_ns: int = 0
    finished: bool = False
    parts: list[Part] = []
    host: dict[str, Any] = {}
    """Host name, platform, Python, torch, CPU count: what the run was made on"""
    command: list[str] = []
    """Command line with secrets masked"""
    git_commit: str | None = None
    clock: list[dict[str, int]] = []
    """Samples {time_ns, perf_counter_ns, monotonic_ns} at start and end"""
    capture: dict[str, Any] = {}
    """Capture settings and what they left out"""
    cost: dict[str, Any] = {}
    """Measured profiling cost: op_ns, line_ns per record, ratio where known"""
    inputs: list[dict[str, Any]] = []
    """Imported files: path, size_bytes, sha256, format, rows by kind"""
    counts: dict[str, int] = {}
    """Source rows read, written by table, quarantined; they add up"""
    losses: list[dict[str, Any]] = []
    repairs: list[dict[str, Any]] = []
    attributes: dict[str, Any] = {}
    """Everything else the source said about the whole run"""


def manifest_path(rank: int) -> str:
    """Path of a rank's manifest, relative to the run's directory."""
    return f"{MANIFEST_FOLDER}/rank-{rank}.json"


def encode(manifest: Manifest) -> bytes:
    """Readable JSON; what has no UTF-8 form (names of files, the command line) is escaped."""
    try:
        data = msgspec.json.encode(manifest)
    except UnicodeEncodeError:
        data = msgspec.json.encode(utf8_value(msgspec.to_builtins(manifest)))
    return msgspec.json.format(data, indent=1)


def decode(data: bytes) -> Manifest:
    """Raises msgspec.DecodeError or msgspec.ValidationError on bad data; unknown fields are ignored."""
    return msgspec.json.decode(data, type=Manifest)
