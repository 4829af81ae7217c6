"""Frames written as text: 'path/file.py(57): function', the way PyTorch's tracers write them."""

from __future__ import annotations

import re
from functools import lru_cache

from explorer.collectors.call_stacks import Frame

_FRAME = re.compile(r"^(?P<file>.+)\((?P<line>\d{1,9})\): (?P<function>.+)$", re.DOTALL)


@lru_cache(maxsize=65_536)
def parse_frame(text: str) -> Frame | None:
    """The frame, or None for other text."""
    match = _FRAME.match(text.strip())
    return Frame(match["file"], int(match["line"]), match["function"]) if match else None
