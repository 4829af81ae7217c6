"""Measured peaks of CPUs, kept in the user's cache folder, one entry per processor and number of cores."""

from __future__ import annotations

import json
import os
from typing import Any


def cache_file() -> str:
    """The file: $NEURON_EXPLORER_CACHE, else the user's cache folder."""
    folder = os.environ.get("NEURON_EXPLORER_CACHE")
    if not folder:
        base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
        folder = os.path.join(base, "neuron-explorer")
    return os.path.join(folder, "cpu-peaks.json")


def read(processor: str, cores: int) -> dict[str, Any] | None:
    """{'flops': {dtype: per second}, 'memory_bandwidth': bytes per second} as measured here, or None."""
    entry = _all().get(_key(processor, cores))
    return entry if isinstance(entry, dict) and isinstance(entry.get("flops"), dict) else None


def write(processor: str, cores: int, peak: dict[str, Any]) -> None:
    """Keep a measurement. A cache that cannot be written is left alone."""
    entries = _all() | {_key(processor, cores): peak}
    try:
        os.makedirs(os.path.dirname(cache_file()), exist_ok=True)
        temporary = f"{cache_file()}.{os.getpid()}.tmp"
        with open(temporary, "w") as file:
            json.dump(entries, file, indent=1)
        os.replace(temporary, cache_file())
    except OSError:
        return


def _all() -> dict[str, Any]:
    try:
        with open(cache_file()) as file:
            entries = json.load(file)
    except (OSError, ValueError):
        return {}
    return entries if isinstance(entries, dict) else {}


def _key(processor: str, cores: int) -> str:
    return f"{processor} x {cores}"
