"""What lies in a directory of Neuron artefacts: Parquet profiles, and raw files that only AWS's tool can read."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field

from explorer.model.neuron_schema import official_tables, table_name

_PARQUET = re.compile(r"^([A-Za-z][A-Za-z0-9]*(?:_[A-Za-z]\w*?)?)(?:_(\d+))?\.parquet$")
_FRAMEWORK = re.compile(r"^(trace|neuron_framework_trace_rank_.*|.*\.pt\.trace)\.json(\.gz)?$")
"""Traces of the framework: TorchNeuron's own, and those that torch.profiler writes beside them (vLLM's workers)."""

_VERSION = re.compile(r"^(.+)@([\w.-]+)$")
_MAX_DEPTH = 12
SYSTEM_TABLES = frozenset(
    (
        "SystemProfileEvents",
        "SystemProfileHbmUsage",
        "SystemProfileMetadata",
        "DeviceProfileList",
        "CpuUsage",
        "HostMemUsage",
        "HbmUsageSummaryByType",
    )
)
"""Tables that a system profile writes; a device profile writes the others."""


@dataclass(frozen=True)
class ProfileDirectory:
    """One directory of official tables; `files` lists each table's Parquet files in their order."""

    path: str
    name: str
    version: str
    files: dict[str, tuple[str, ...]]

    @property
    def has_device(self) -> bool:
        return "Metadata" in self.files or "Instruction" in self.files or "Summary" in self.files

    @property
    def has_system(self) -> bool:
        return "SystemProfileEvents" in self.files


@dataclass
class RawArtefacts:
    """Raw profiler output, as paths: device traces, compiled graphs, runtime traces, framework traces."""

    ntff: list[str] = field(default_factory=list)
    neff: list[str] = field(default_factory=list)
    runtime: list[str] = field(default_factory=list)
    framework: list[str] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.ntff or self.neff or self.runtime)

    def faults(self) -> list[tuple[str, str, str]]:
        """(kind, what is wrong, what to do) for the known failure signs of a capture."""
        found = []
        empty = [path for path in self.ntff if os.path.getsize(path) == 0]
        if empty:
            found.append(
                (
                    "neuron_empty_ntff",
                    f"{len(empty)} of {len(self.ntff)} device traces (.ntff) hold 0 bytes: the core was idle or the program was not warm.",
                    "Run at least three iterations before the profiled ones and use every captured core.",
                )
            )
        if self.ntff and not self.neff:
            found.append(
                (
                    "neuron_missing_neff",
                    "Device traces (.ntff) lie here without any compiled graph (.neff); they cannot be read without each one that ran.",
                    "Keep the NEFF cache beside the traces (neff_cache_dir of NeuronConfig).",
                )
            )
        if self.runtime and not self.ntff:
            found.append(
                (
                    "neuron_no_device_trace",
                    "Only runtime traces (.pb) lie here: device capture was off.",
                    "Use ProfileMode.DEVICE, or NEURON_RT_INSPECT_DEVICE_PROFILE=session for servers and eager programs.",
                )
            )
        return found


@dataclass
class Artefacts:
    """Everything found under one directory."""

    root: str
    profiles: list[ProfileDirectory]
    raw: RawArtefacts


def profile_files(names: list[str]) -> dict[str, list[str]]:
    """File names of one directory by table, split files in numeric order; other names are left out."""
    numbered: dict[str, list[tuple[int, str]]] = {}
    for name in names:
        if match := _PARQUET.match(name):
            numbered.setdefault(table_name(match.group(1)), []).append((int(match.group(2) or -1), name))
    return {table: [name for _, name in sorted(found)] for table, found in sorted(numbered.items())}


def is_profile(names: list[str]) -> bool:
    """Whether a directory's file names are those of a profile: at least one official table that no other format has."""
    tables = profile_files(names)
    return any(table in official_tables() for table in tables)


def find_artefacts(root: str) -> Artefacts:
    """Walk a directory (links to directories are not followed) for profiles and raw artefacts.

    Of several versions of one profile (`<name>@<version>` beside `<name>@latest`) only the latest counts.
    """
    profiles: list[ProfileDirectory] = []
    raw = RawArtefacts()
    root = os.path.abspath(root)
    for folder, folders, names in os.walk(root):
        folders.sort()
        if folder[len(root) :].count(os.sep) >= _MAX_DEPTH:
            folders.clear()
        if is_profile(names):
            base = os.path.basename(folder)
            match = _VERSION.match(base)
            name, version = match.groups() if match else (base, "")
            files = {
                table: tuple(os.path.join(folder, file) for file in found)
                for table, found in profile_files(names).items()
            }
            profiles.append(ProfileDirectory(folder, name, version, files))
        for file in sorted(names):
            path = os.path.join(folder, file)
            if file.endswith(".ntff"):
                raw.ntff.append(path)
            elif file.endswith(".neff"):
                raw.neff.append(path)
            elif file in ("trace_info.pb", "ntrace.pb", "cpu_util.pb", "host_mem.pb"):
                raw.runtime.append(path)
            elif _FRAMEWORK.match(file):
                raw.framework.append(path)
    return Artefacts(root, _latest(profiles), raw)


def _latest(profiles: list[ProfileDirectory]) -> list[ProfileDirectory]:
    groups: dict[tuple[str, str], list[ProfileDirectory]] = {}
    for profile in profiles:
        groups.setdefault((os.path.dirname(profile.path), profile.name), []).append(profile)
    kept = []
    for versions in groups.values():
        latest = [p for p in versions if p.version == "latest"]
        kept.append(
            latest[0] if latest else max(versions, key=lambda p: (os.path.getmtime(p.path), p.version))
        )
    return kept
