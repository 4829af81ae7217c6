"""Giving freed memory back to the system between the stages of an import."""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from typing import Any


@cache
def _trim() -> Any:
    if not sys.platform.startswith("linux"):
        return None
    try:
        return ctypes.CDLL(None).malloc_trim
    except (OSError, AttributeError):  # Another C library
        return None


def release_memory() -> None:
    """Return what the C library and Arrow hold in reserve. Freed blocks of one stage seldom fit the next one's needs."""
    import pyarrow as pa

    pa.default_memory_pool().release_unused()
    if (trim := _trim()) is not None:
        trim(0)
