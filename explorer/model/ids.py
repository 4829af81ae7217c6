"""Content-hashed ids of dimension rows: positive, 53 bits (so JSON keeps them exact), equal in every rank and run."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

_MASK = (1 << 53) - 1


def content_id(*parts: object) -> int:
    """Hash of the parts' text, 1 to 2**53 - 1. None and the empty string differ."""
    text = "\x1f".join("\x00" if part is None else str(part) for part in parts)
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return (int.from_bytes(digest, "big") & _MASK) or 1


def site_id(file: str, line: int, function: str, end_line: int | None = None) -> int:
    """Id of a source line."""
    return content_id("site", file, line, end_line, function)


def stack_id(site_ids: Sequence[int]) -> int:
    """Id of a call chain, innermost frame first."""
    return content_id("stack", *site_ids)


def module_id(path: str, class_name: str) -> int:
    """Id of an nn.Module instance."""
    return content_id("module", path, class_name)
