"""The whole content of a source: as bytes, or as a plain file where a reader needs one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from explorer.collectors.claimed_folder import scratch_path
from explorer.collectors.source import Damaged, Source
from explorer.model.errors import InputError


@dataclass(frozen=True, slots=True)
class Content:
    """Decompressed bytes; `damage` says why they end early, None where they are whole."""

    data: bytes
    damage: str | None = None


def read_content(source: Source, *, max_bytes: int = 4 << 30) -> Content:
    """Everything that can be decompressed.

    Raises InputError when it is larger than `max_bytes`, for formats that are read in one piece.
    """
    parts: list[bytes] = []
    total = 0
    try:
        for block in source.blocks():
            total += len(block)
            if total > max_bytes:
                raise InputError(
                    f"{source.path} holds more than {max_bytes:,} bytes; this format is read in one piece.",
                    "Record a shorter window.",
                )
            parts.append(block)
    except Damaged as error:
        return Content(b"".join(parts), str(error))
    return Content(b"".join(parts))


@contextmanager
def plain_file(source: Source) -> Iterator[tuple[str, str | None]]:
    """Path of an uncompressed file with the content, and why it ends early (None: whole).

    A plain source is its own file. Others are unpacked into the temporary folder, never beside the input.
    """
    if source.container == "plain":
        yield source.path, None
        return
    with scratch_path() as folder:
        path = os.path.join(folder, "content")
        damage = None
        with open(path, "wb") as file:
            try:
                for block in source.blocks():
                    file.write(block)
            except Damaged as error:
                damage = str(error)
        yield path, damage
