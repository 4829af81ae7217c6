"""The user's source as it ran."""

from __future__ import annotations

import hashlib
import linecache
from collections.abc import Iterable
from typing import Any

from explorer.collectors.capture.source_paths import SourcePaths

MAX_SOURCE_BYTES = 2_000_000


def source_rows(files: Iterable[str], paths: SourcePaths) -> list[dict[str, Any]]:
    """Rows of the table `sources`. Text that exists only in memory (notebook cells, exec) comes from linecache."""
    rows = []
    for file in sorted(files):
        text = "".join(linecache.getlines(file))
        if not text or len(text) > MAX_SOURCE_BYTES:
            continue
        data = text.encode("utf-8", "surrogatepass")
        rows.append({"file": paths.name(file), "sha256": hashlib.sha256(data).hexdigest(), "text": text})
    return rows
