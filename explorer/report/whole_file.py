"""Writing a file whole or not at all."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[str]:
    """A temporary name beside the target, renamed to it on success and removed otherwise. A link stays one; what is no file
    (a pipe, a device) is written itself. Raises OSError for a name that only a directory can have."""
    named = os.fspath(path)
    if named.endswith("/"):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), named)
    if named.startswith("/dev/") or (os.path.exists(named) and not os.path.isfile(named)):
        yield named
        return
    target = os.path.realpath(named)
    temporary = f"{target}.{os.getpid()}.tmp"
    try:
        yield temporary
        os.replace(temporary, target)
    finally:
        if os.path.exists(temporary):
            os.unlink(temporary)


def write_whole(path: str | os.PathLike[str], data: bytes) -> None:
    """Write bytes. Raises OSError when the file cannot be written."""
    with whole_file(path) as temporary, open(temporary, "wb") as file:
        file.write(data)
