"""One writer for one rank of a run at a time, between processes."""

from __future__ import annotations

import contextlib
import os

from explorer.store.location import Location
from explorer.store.manifest import MANIFEST_FOLDER

try:
    import fcntl
except ImportError:
    fcntl = None  # type: ignore[assignment]


class Claim:
    """A lock that ends with its writer, however that ends: the operating system holds it, not the file that names it.

    On an object store, or a file system without locks, a claim holds nothing.
    """

    def __init__(self, path: str, descriptor: int) -> None:
        self._path = path
        self._descriptor = descriptor
        self._process_id = os.getpid()

    @classmethod
    def take(cls, location: Location, rank: int) -> Claim | None:
        """The claim, or None where another writer holds it. Raises OSError where the folder cannot be written."""
        if not location.is_local or fcntl is None:
            return cls("", -1)
        path = location.join(f"{MANIFEST_FOLDER}/.rank-{rank}.writing")
        while True:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(descriptor)
                return None
            except OSError:
                # No locks here, as on some network file systems.
                return cls(path, descriptor)
            if _is_at(path, descriptor):
                return cls(path, descriptor)
            # Its last holder removed the file between our opening and our locking it.
            os.close(descriptor)

    def release(self) -> None:
        """Give it back and remove its file. In a forked child this only lets go: the claim is the parent's."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor < 0:
            return
        if os.getpid() == self._process_id:
            with contextlib.suppress(OSError):
                os.unlink(self._path)
        os.close(descriptor)

    def __del__(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)


def _is_at(path: str, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(descriptor))
    except OSError:
        return False
