"""The compiled parts of the reader of traces, where the installation could build them. Loads nothing heavy."""

from __future__ import annotations

import os
from importlib import import_module
from types import ModuleType

SETTING = "NE_NO_SCANNER"
LAYOUT = 2
"""As in the scanner's module.c."""
SWEEP_LAYOUT = 1
"""As in sweep/module.c."""


def compiled() -> ModuleType | None:
    """The scanner's module; None where it was not built, is not of this version, or NE_NO_SCANNER is set."""
    if os.environ.get(SETTING):
        return None
    try:
        found = import_module("explorer.collectors.kineto._scanner")
    except ImportError:
        return None
    return found if getattr(found, "LAYOUT", None) == LAYOUT else None


def compiled_sweep() -> ModuleType | None:
    """The module that nests events; None as for the scanner."""
    if os.environ.get(SETTING):
        return None
    try:
        found = import_module("explorer.collectors.kineto._sweep")
    except ImportError:
        return None
    return found if getattr(found, "LAYOUT", None) == SWEEP_LAYOUT else None
