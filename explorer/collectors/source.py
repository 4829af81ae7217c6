"""One input file or archive member: its container, its first bytes, and its decompressed content under limits."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from explorer.collectors.compressed import GZIP, ZSTD, Damaged, gzip_blocks, zstd_blocks
from explorer.collectors.zip_archive import MAGIC, Member, member_blocks, members_of
from explorer.model.errors import InputError

HEAD_BYTES = 65_536
BLOCK_BYTES = 1 << 20
RATIO_FREE_BYTES = 64 << 20
"""Below this size no compression ratio is suspicious."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What decompressed content may grow to before it is refused as a bomb."""

    max_ratio: int = 400
    max_bytes: int = 64 << 30


@dataclass(frozen=True, slots=True)
class Source:
    """An input: `head` is its first 64 KiB after decompression, `container` is plain, gzip, zstd or zip."""

    path: str
    size_bytes: int
    head: bytes
    container: str = "plain"
    member: str | None = None
    limits: Limits = Limits()

    @property
    def name(self) -> str:
        """The file name, with the member's where it lies in an archive."""
        return os.path.basename(self.path) if self.member is None else self.member

    def blocks(self, block_bytes: int = BLOCK_BYTES) -> Iterator[bytes]:
        """The decompressed content. Raises InputError over a limit, and Damaged where the rest cannot be decompressed."""
        return _limited(self, _BLOCKS[self.container](self, block_bytes))

    def blocks_from(self, offset: int, block_bytes: int = BLOCK_BYTES) -> Iterator[bytes]:
        """The content of a plain file from a byte offset on. Raises InputError over a limit."""
        return _limited(self, _plain(self, block_bytes, offset))


def open_source(path: str | os.PathLike[str], limits: Limits | None = None) -> list[Source]:
    """The sources in one file: itself, or the members of a zip archive.

    Raises InputError when the file is missing, empty, unreadable, no regular file, or a hostile archive.
    """
    text = os.fspath(path)
    limits = limits or Limits()
    try:
        status = os.stat(text)
        if not stat.S_ISREG(status.st_mode):
            raise InputError(f"{text} is not a regular file.", "Give a trace file or a directory of them.")
        with open(text, "rb") as file:
            start = file.read(4)
    except OSError as error:
        what = (
            "does not exist" if isinstance(error, FileNotFoundError) else f"cannot be read: {error.strerror}"
        )
        raise InputError(f"{text} {what}.", "Check the path.") from error
    if status.st_size == 0:
        raise InputError(f"{text} is empty.", "The profiler may not have finished writing it.")
    if start == MAGIC:
        return [_member(text, member, limits) for member in members_of(text)]
    return [_with_head(Source(text, status.st_size, b"", _container(start) or "plain", None, limits))]


def _container(start: bytes) -> str | None:
    return "gzip" if start.startswith(GZIP) else "zstd" if start.startswith(ZSTD) else None


def _member(path: str, member: Member, limits: Limits) -> Source:
    """A file of an archive, which may be compressed itself; one that cannot be read at all has an empty head."""
    size = max(member.packed_bytes or os.path.getsize(path) - member.start, 1)
    source = _with_head(Source(path, size, b"", "zip", member.name, limits), may_be_empty=True)
    packed = _container(source.head)
    return (
        source
        if packed is None
        else _with_head(replace(source, head=b"", container=packed), may_be_empty=True)
    )


def _with_head(source: Source, *, may_be_empty: bool = False) -> Source:
    head = bytearray()
    try:
        for block in source.blocks(HEAD_BYTES):
            head += block
            if len(head) >= HEAD_BYTES:
                break
    except Damaged as error:
        if not head and not may_be_empty:
            raise InputError(f"{source.path} is a damaged {source.container} file: {error}.") from error
    if not head and not may_be_empty:
        raise InputError(f"{source.path} holds no data.", "The profiler may not have finished writing it.")
    return replace(source, head=bytes(head[:HEAD_BYTES]))


def _limited(source: Source, blocks: Iterator[bytes]) -> Iterator[bytes]:
    total = 0
    limits = source.limits
    for block in blocks:
        total += len(block)
        if total > limits.max_bytes:
            raise InputError(
                f"{source.path} holds more than {limits.max_bytes:,} bytes.",
                "Raise the limit with --max-bytes if you trust it.",
            )
        if (
            source.container != "plain"
            and total > RATIO_FREE_BYTES
            and total > limits.max_ratio * source.size_bytes
        ):
            raise InputError(
                f"{source.path} expands more than {limits.max_ratio} times and looks like a decompression bomb.",
                "Raise the limit with --max-ratio if you trust it.",
            )
        yield block


def _plain(source: Source, block_bytes: int, offset: int = 0) -> Iterator[bytes]:
    with open(source.path, "rb") as file:
        file.seek(offset)
        while block := file.read(block_bytes):
            yield block


def _packed(source: Source) -> Iterator[bytes]:
    """The content of the file, or of the archive's member, as it is stored."""
    if source.member is None:
        return _plain(source, BLOCK_BYTES)
    return member_blocks(source.path, source.member, BLOCK_BYTES)


def _gzip(source: Source, block_bytes: int) -> Iterator[bytes]:
    return gzip_blocks(_packed(source), block_bytes)


def _zstd(source: Source, block_bytes: int) -> Iterator[bytes]:
    return zstd_blocks(lambda: _packed(source), block_bytes)


def _zip(source: Source, block_bytes: int) -> Iterator[bytes]:
    assert source.member is not None
    return member_blocks(source.path, source.member, block_bytes)


_BLOCKS: dict[str, Callable[[Source, int], Iterator[bytes]]] = {
    "plain": _plain,
    "gzip": _gzip,
    "zstd": _zstd,
    "zip": _zip,
}
