"""Real traces for tests: ../shared/traces beside the repository, or the folder $NE_TRACES; skipped with a reason elsewhere."""

from __future__ import annotations

import json
import os
from functools import cache
from pathlib import Path
from typing import Any

import pytest

_ROOT = Path(__file__).resolve().parents[1]


def traces_folder() -> Path | None:
    """The folder of real traces, or None where this machine has none."""
    wanted = os.environ.get("NE_TRACES")
    folder = Path(wanted) if wanted else _ROOT.parent / "shared" / "traces"
    return folder if (folder / "MANIFEST.json").is_file() else None


def _folder() -> Path:
    folder = traces_folder()
    if folder is None:
        pytest.skip("no real traces: set NE_TRACES to their folder", allow_module_level=True)
    return folder


def trace(name: str) -> Path:
    """Path of one real trace, by its path inside the folder; skips the test where it is not there."""
    path = _folder() / name
    if not path.exists():
        pytest.skip(f"no trace {name} in {_folder()}")
    return path


def oracle(kind: str, name: str) -> dict[str, Any]:
    """Reference values of kind (basic, hta, tracelens, other ...) for one trace; skips where there are none."""
    path = _folder() / "oracles" / kind / f"{name.replace('/', '__')}.json"
    if not path.is_file():
        pytest.skip(f"no {kind} reference values for {name}")
    values: dict[str, Any] = json.loads(path.read_text())
    return values


@cache
def all_traces(kind: str | None = None) -> tuple[str, ...]:
    """Names of all real traces, or of those that have reference values of a kind. Empty where this machine has none."""
    folder = traces_folder()
    if folder is None:
        return ()
    names = sorted(
        entry["file"]
        for entry in json.loads((folder / "MANIFEST.json").read_text())["files"]
        if (folder / entry["file"]).is_file()
    )
    if kind is None:
        return tuple(names)
    return tuple(n for n in names if (folder / "oracles" / kind / f"{n.replace('/', '__')}.json").is_file())
