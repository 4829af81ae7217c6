"""One input file or archive member: its container, its first bytes, and its decompressed content under limits."""

from __future__ import annotations

import os
import stat
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from explorer.model.errors import InputError

HEAD_BYTES = 65_536
BLOCK_BYTES = 1 << 20
RATIO_FREE_BYTES = 64 << 20
"""Below this size no compression ratio is suspicious."""

_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"
_ZIP = b"PK\x03\x04"


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


class Damaged(Exception):
    """The container is cut off or corrupt from here on; what came before is good."""


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
    if start == _ZIP:
        return [_with_head(Source(text, size, b"", "zip", name, limits)) for name, size in _members(text)]
    container = "gzip" if start[:2] == _GZIP else "zstd" if start == _ZSTD else "plain"
    return [_with_head(Source(text, status.st_size, b"", container, None, limits))]


def _with_head(source: Source) -> Source:
    head = bytearray()
    try:
        for block in source.blocks(HEAD_BYTES):
            head += block
            if len(head) >= HEAD_BYTES:
                break
    except Damaged as error:
        if not head:
            raise InputError(f"{source.path} is a damaged {source.container} file: {error}.") from error
    if not head:
        raise InputError(f"{source.path} holds no data.", "The profiler may not have finished writing it.")
    return Source(
        source.path,
        source.size_bytes,
        bytes(head[:HEAD_BYTES]),
        source.container,
        source.member,
        source.limits,
    )


def _members(path: str) -> list[tuple[str, int]]:
    try:
        with zipfile.ZipFile(path) as archive:
            infos = [info for info in archive.infolist() if not info.is_dir()]
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise InputError(f"{path} is a damaged zip file: {error}.") from error
    for info in infos:
        parts = info.filename.replace("\\", "/").split("/")
        if ".." in parts or parts[0] == "" or ":" in parts[0]:
            raise InputError(
                f"{path} holds a member that leads out of the archive: {info.filename!r}.",
                "Unpack it yourself if you trust it.",
            )
        if info.flag_bits & 1:
            raise InputError(f"{path} is encrypted.", "Unpack it first.")
    wanted = [
        (info.filename, max(info.compress_size, 1))
        for info in infos
        if info.file_size and not info.filename.startswith("__MACOSX/")
    ]
    if not wanted:
        raise InputError(f"{path} is an archive without files.")
    return wanted


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


def _gzip(source: Source, block_bytes: int) -> Iterator[bytes]:
    """Several members may follow each other; zeros after the last one are padding, anything else is damage."""
    with open(source.path, "rb") as file:
        data = file.read(BLOCK_BYTES)
        while data:
            if not data.startswith(_GZIP):
                raise Damaged("what follows the end of its gzip data is no gzip data")
            inflate = zlib.decompressobj(wbits=31)
            while not inflate.eof:
                before = inflate.copy()
                try:
                    block = inflate.decompress(data, block_bytes)
                except zlib.error as error:
                    if block := _good_beginning(before, data):
                        yield block
                    raise Damaged(f"its gzip data is corrupt ({error})") from error
                if block:
                    yield block
                data = inflate.unconsumed_tail
                if not data and not inflate.eof:
                    data = file.read(BLOCK_BYTES)
                    if not data and not block:
                        raise Damaged("its gzip data ends early")
            data = (inflate.unused_data + file.read(BLOCK_BYTES)).lstrip(b"\0")
            while not data and (more := file.read(BLOCK_BYTES)):
                data = more.lstrip(b"\0")


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


def _zstd(source: Source, block_bytes: int) -> Iterator[bytes]:
    import pyarrow as pa

    try:
        with pa.input_stream(source.path, compression="zstd", buffer_size=BLOCK_BYTES) as stream:
            while block := stream.read(block_bytes):
                yield block
    except (OSError, pa.ArrowException) as error:
        raise Damaged(f"its zstd data is corrupt or ends early ({error})") from error


def _zip(source: Source, block_bytes: int) -> Iterator[bytes]:
    assert source.member is not None
    try:
        with zipfile.ZipFile(source.path) as archive, archive.open(source.member) as stream:
            # The checksum is compared here: zipfile would keep back the last block where it is wrong.
            stream._expected_crc = None  # type: ignore[attr-defined]
            checksum = 0
            while block := stream.read(block_bytes):
                checksum = zlib.crc32(block, checksum)
                yield block
            if checksum != archive.getinfo(source.member).CRC:
                raise Damaged("its zip data is corrupt (wrong checksum)")
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError) as error:
        raise Damaged(f"its zip data is corrupt or ends early ({error})") from error


_BLOCKS: dict[str, Callable[[Source, int], Iterator[bytes]]] = {
    "plain": _plain,
    "gzip": _gzip,
    "zstd": _zstd,
    "zip": _zip,
}
