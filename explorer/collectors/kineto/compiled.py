"""The compiled parts of the reader of traces, where the installation could build them. Loads nothing heavy."""

from __future__ import annotations

import os
from importlib import import_module
from types import ModuleType

SETTING = "NE_NO_SCANNER"
LAYOUT = 2
"""As in the scanner's module.c."""
SWEEP_LAYOUT = 2
"""As in sweep/module.c."""
SCRATCH_LAYOUT = 1
"""As in scratch/module.c."""


def compiled() -> ModuleType | None:
    """The scanner's module; None where it was not built, is not of this version, or NE_NO_SCANNER is set."""
    return _part("_scanner", LAYOUT)


def compiled_sweep() -> ModuleType | None:
    """The module that nests events; None as for the scanner."""
    return _part("_sweep", SWEEP_LAYOUT)


def compiled_scratch() -> ModuleType | None:
    """The module that keeps large arrays in files; None where it was not built, or not for this system. Readers have no part
    in it, so NE_NO_SCANNER does not matter."""
    return _built("_scratch", SCRATCH_LAYOUT)


def _part(name: str, layout: int) -> ModuleType | None:
    return None if os.environ.get(SETTING) else _built(name, layout)


def _built(name: str, layout: int) -> ModuleType | None:
    try:
        found = import_module(f"explorer.collectors.kineto.{name}")
    except ImportError:
        return None
    return found if getattr(found, "LAYOUT", None) == layout else None
