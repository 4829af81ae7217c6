"""Values nested deeper than JSON readers go, as the texts they were written as."""

from __future__ import annotations

import re

import msgspec

DEEPEST = 400
"""Brackets around a value that is kept as it is."""
_KEPT = 2
"""An event and its args are never made a text as a whole."""
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[{]|[\]}]', re.DOTALL)


def deep_as_text(piece: bytes) -> bytes:
    """The piece, with each member of args in which brackets stand more than DEEPEST deep written as a JSON string."""
    result: list[bytes] = []
    done = begin = depth = reached = 0
    for match in _TOKEN.finditer(piece):
        byte = match.group()
        if byte in b"[{":
            depth += 1
            if depth == _KEPT + 1:
                begin, reached = match.start(), depth
            reached = max(reached, depth)
        elif byte in b"]}":
            depth -= 1
            if depth == _KEPT and reached > DEEPEST:
                text = piece[begin : match.end()].decode("utf-8", "replace")
                result += (piece[done:begin], msgspec.json.encode(text))
                done = match.end()
                reached = 0
    return b"".join((*result, piece[done:])) if result else piece
