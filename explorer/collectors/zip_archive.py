"""The files of a zip archive, read from their places in it: also where its directory is cut off, up to the damage."""

from __future__ import annotations

import os
import struct
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from explorer.collectors.compressed import Damaged, deflate_blocks
from explorer.model.errors import InputError

MAGIC = b"PK\x03\x04"
_HEADER = struct.Struct("<4s5H3I2H")
_READ_BYTES = 1 << 20
_ENCRYPTED, _SIZES_FOLLOW = 1, 8
_LINK = 0o120000
_SEARCHED_BYTES = 16 << 30
"""Content that is gone through to find where a file of a damaged archive ends"""


@dataclass(frozen=True, slots=True)
class Member:
    """A file in an archive. `start` is where its compressed data begin, `packed_bytes` their size (None: up to their own
    end), `checksum` the CRC-32 of its content where that is known; `damage` says why nothing follows it."""

    name: str
    start: int
    packed_bytes: int | None
    method: int
    checksum: int | None
    damage: str = ""


def members_of(path: str) -> list[Member]:
    """The files of an archive, in order; one whose name occurs again is called NAME#2.

    Raises InputError where it is no archive, is encrypted, is empty, or a name or a link in it leads out of it.
    """
    status = os.stat(path)
    return list(_members_of(path, status.st_size, status.st_mtime_ns))


@lru_cache(maxsize=16)
def _members_of(path: str, size_bytes: int, changed_ns: int) -> tuple[Member, ...]:
    try:
        with zipfile.ZipFile(path) as archive, open(path, "rb") as file:
            found = [_listed(path, file.fileno(), info) for info in archive.infolist() if info.file_size]
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError, struct.error) as error:
        found = list(_walked(path, size_bytes))
        if not found:
            raise InputError(f"{path} is a damaged zip file: {error}.") from error
        found[-1] = replace(found[-1], damage=f"the zip archive is cut off or damaged behind it ({error})")
    seen: dict[str, int] = {}
    named = []
    for member in found:
        if member.name.endswith("/") or member.name.startswith("__MACOSX/"):
            continue
        number = seen[member.name] = seen.get(member.name, 0) + 1
        named.append(member if number == 1 else replace(member, name=f"{member.name}#{number}"))
    if not named:
        raise InputError(f"{path} is an archive without files.")
    return tuple(named)


def _listed(path: str, descriptor: int, info: zipfile.ZipInfo) -> Member:
    """A file by its entry in the directory; its data stand behind a header of their own."""
    _check(path, info.filename, info.flag_bits)
    if info.external_attr >> 16 & 0o170000 == _LINK:
        raise InputError(
            f"{path} holds a symbolic link: {info.filename!r}.", "Unpack it yourself if you trust it."
        )
    header = os.pread(descriptor, _HEADER.size, info.header_offset)
    if len(header) < _HEADER.size or header[:4] != MAGIC:
        # Reading it will say so; the others are good.
        return Member(info.filename, info.header_offset, 0, info.compress_type, info.CRC)
    *_, name_bytes, extra_bytes = _HEADER.unpack(header)
    start = info.header_offset + _HEADER.size + name_bytes + extra_bytes
    return Member(info.filename, start, info.compress_size, info.compress_type, info.CRC)


def _walked(path: str, size_bytes: int) -> Iterator[Member]:
    """Files by the headers before their data, as far as these follow each other."""
    place = 0
    with open(path, "rb") as file:
        while True:
            header = os.pread(file.fileno(), _HEADER.size, place)
            if len(header) < _HEADER.size or header[:4] != MAGIC:
                return
            _, _, flags, method, _, _, checksum, packed, _, name_bytes, extra_bytes = _HEADER.unpack(header)
            place += _HEADER.size
            name = os.pread(file.fileno(), name_bytes, place).decode("utf-8", "replace")
            place += name_bytes + extra_bytes
            _check(path, name, flags)
            if place >= size_bytes:
                return
            if not flags & _SIZES_FOLLOW:
                if packed == 0xFFFF_FFFF:
                    # Sizes beyond 4 GiB stand elsewhere: whatever follows belongs to it.
                    yield Member(name, place, None, method, None)
                    return
                if packed:
                    yield Member(name, place, packed, method, checksum)
                place += packed
                continue
            yield Member(name, place, None, method, None)
            if method != zipfile.ZIP_DEFLATED or (end := _end_of(path, place)) is None:
                return
            # A checksum and two sizes follow, with or without a signature, each of 4 or 8 bytes.
            near = os.pread(file.fileno(), 64, end).find(MAGIC)
            if near < 0:
                return
            place = end + near


def _end_of(path: str, start: int) -> int | None:
    """Where deflate data end; None where they are damaged."""
    inflate = zlib.decompressobj(wbits=-15)
    place, size = start, 0
    for block in _stretch(path, start, None):
        place += len(block)
        try:
            size += len(inflate.decompress(block, 1))
            while inflate.unconsumed_tail and not inflate.eof and size < _SEARCHED_BYTES:
                size += len(inflate.decompress(inflate.unconsumed_tail, _READ_BYTES))
        except zlib.error:
            return None
        if size >= _SEARCHED_BYTES:
            return None
        if inflate.eof:
            return place - len(inflate.unused_data)
    return None


def _check(path: str, name: str, flags: int) -> None:
    parts = name.replace("\\", "/").split("/")
    if ".." in parts or parts[0] == "" or ":" in parts[0]:
        raise InputError(
            f"{path} holds a member that leads out of the archive: {name!r}.",
            "Unpack it yourself if you trust it.",
        )
    if flags & _ENCRYPTED:
        raise InputError(f"{path} is encrypted.", "Unpack it first.")


def member_blocks(path: str, name: str, block_bytes: int) -> Iterator[bytes]:
    """The content of one file of an archive. Raises Damaged where the rest of it cannot be read."""
    member = next((each for each in members_of(path) if each.name == name), None)
    if member is None:
        raise Damaged("the archive has changed")
    packed = _stretch(path, member.start, member.packed_bytes)
    if member.method == zipfile.ZIP_DEFLATED:
        content = deflate_blocks(packed, block_bytes)
    elif member.method == zipfile.ZIP_STORED:
        content = packed
    else:
        content = _by_library(path, member, block_bytes)
    checksum = size = 0
    for block in content:
        checksum = zlib.crc32(block, checksum)
        size += len(block)
        yield block
    if member.checksum is not None and checksum != member.checksum:
        raise Damaged("its zip data is corrupt (wrong checksum)" if size else "its zip data is missing")
    if member.damage:
        raise Damaged(member.damage)


def _stretch(path: str, start: int, size: int | None) -> Iterator[bytes]:
    with open(path, "rb") as file:
        file.seek(start)
        while size is None or size > 0:
            block = file.read(_READ_BYTES if size is None else min(size, _READ_BYTES))
            if not block:
                return
            size = size if size is None else size - len(block)
            yield block


def _by_library(path: str, member: Member, block_bytes: int) -> Iterator[bytes]:
    """Content compressed by a method that is rare in archives (bzip2, LZMA)."""
    try:
        with (
            zipfile.ZipFile(path) as archive,
            archive.open(member.name.rpartition("#")[0] or member.name) as stream,
        ):
            while block := stream.read(block_bytes):
                yield block
    except (
        zipfile.BadZipFile,
        zlib.error,
        EOFError,
        OSError,
        NotImplementedError,
        KeyError,
        ValueError,
    ) as error:
        raise Damaged(f"its zip data is corrupt or ends early ({error})") from error
