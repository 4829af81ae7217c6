"""Decompression block by block that keeps every byte before damage: gzip, raw deflate and zstd."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator

GZIP = b"\x1f\x8b"
ZSTD = b"\x28\xb5\x2f\xfd"
_READ_BYTES = 1 << 16
"""What is read of zstd data at once"""


class Damaged(Exception):
    """The container is cut off or corrupt from here on; what came before is good."""


def gzip_blocks(packed: Iterator[bytes], block_bytes: int) -> Iterator[bytes]:
    """Decompressed gzip data. Several members may follow each other; zeros after the last one are padding, anything else is
    damage.

    Raises Damaged where the rest cannot be decompressed.
    """
    data = next(packed, b"")
    while data:
        while len(data) < len(GZIP) and (more := next(packed, b"")):
            data += more
        if not data.startswith(GZIP):
            raise Damaged("what follows the end of its gzip data is no gzip data")
        inflate = zlib.decompressobj(wbits=31)
        yield from _inflated(inflate, data, packed, block_bytes, "gzip")
        data = inflate.unused_data.lstrip(b"\0")
        while not data and (more := next(packed, b"")):
            data = more.lstrip(b"\0")


def deflate_blocks(packed: Iterator[bytes], block_bytes: int) -> Iterator[bytes]:
    """Decompressed deflate data without a header, as zip members have it. Raises Damaged as `gzip_blocks` does."""
    yield from _inflated(zlib.decompressobj(wbits=-15), next(packed, b""), packed, block_bytes, "zip")


def zstd_blocks(reopen: Callable[[], Iterator[bytes]], block_bytes: int) -> Iterator[bytes]:
    """Decompressed zstd frames; `reopen` gives the compressed data from its beginning. Raises Damaged as `gzip_blocks` does."""
    import pyarrow as pa

    feed = _Feed(reopen())
    given = reached = 0
    try:
        with pa.CompressedInputStream(pa.PythonFile(feed, mode="r"), "zstd") as stream:
            while block := stream.read(block_bytes):
                given, reached = given + len(block), feed.place
                yield block
    except (OSError, pa.ArrowException) as error:
        # The decoder gives nothing of a call that fails: it is called again, near the damage byte by byte.
        yield from _before_damage(reopen, given, max(0, reached - 2 * _READ_BYTES))
        raise Damaged(feed.damage or f"its zstd data is corrupt or ends early ({error})") from error
    if feed.damage:
        raise Damaged(feed.damage)


def _before_damage(reopen: Callable[[], Iterator[bytes]], given: int, careful_from: int) -> Iterator[bytes]:
    """What zstd data gives behind the first `given` bytes, up to the byte where it is corrupt."""
    import pyarrow as pa

    found = bytearray()
    try:
        with pa.CompressedInputStream(
            pa.PythonFile(_Feed(reopen(), careful_from), mode="r"), "zstd"
        ) as stream:
            while given and (block := stream.read(min(given, 1 << 20))):
                given -= len(block)
            while byte := stream.read(1):
                found += byte
    except (OSError, pa.ArrowException):
        pass
    if found:
        yield bytes(found)


class _Feed:
    """Blocks as a file that is read from front to end; from byte `careful_from` on it gives one byte a time."""

    closed = False

    def __init__(self, blocks: Iterator[bytes], careful_from: int | None = None) -> None:
        self._blocks = blocks
        self._careful_from = careful_from
        self._data = memoryview(b"")
        self.place = 0
        self.damage = ""
        """Why the blocks themselves ended early"""

    def read(self, size: int = -1) -> bytes:
        if not len(self._data):
            try:
                self._data = memoryview(next(self._blocks, b""))
            except Damaged as error:
                self.damage = str(error)
        wanted = _READ_BYTES if size < 0 else size
        if self._careful_from is not None:
            wanted = min(wanted, max(1, self._careful_from - self.place))
        found = bytes(self._data[:wanted])
        self._data = self._data[wanted:]
        self.place += len(found)
        return found

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        self.closed = True


def _inflated(
    inflate: zlib._Decompress, data: bytes, packed: Iterator[bytes], block_bytes: int, what: str
) -> Iterator[bytes]:
    """The data of one stream; what follows it is `inflate.unused_data`."""
    while not inflate.eof:
        before = inflate.copy()
        try:
            block = inflate.decompress(data, block_bytes)
        except zlib.error as error:
            if block := _good_beginning(before, data):
                yield block
            raise Damaged(f"its {what} data is corrupt ({error})") from error
        if block:
            yield block
        data = inflate.unconsumed_tail
        if not data and not inflate.eof:
            data = next(packed, b"")
            if not data and not block:
                raise Damaged(f"its {what} data ends early")


def _good_beginning(inflate: zlib._Decompress, data: bytes) -> bytes:
    """What compressed data gives before the place where it is corrupt: an error costs all that one call would have given, so
    the bytes go in one by one."""
    found = bytearray()
    for place in range(len(data)):
        try:
            found += inflate.decompress(data[place : place + 1])
        except zlib.error:
            break
    return bytes(found)
