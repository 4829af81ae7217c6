"""Folders that one process fills: a lock on the folder says that it lives, so that what a killed one left can be removed."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator

try:
    import fcntl
except ImportError:
    fcntl = None  # type: ignore[assignment]

_SCRATCH = "neuron-explorer-scratch-"


class ClaimedFolder:
    """A folder of this process until `remove` or `release`; `make` makes it and gives its path."""

    def __init__(self, make: Callable[[], str]) -> None:
        # Whoever removes what is abandoned may come between making and locking: then it is made again.
        while True:
            self.path = make()
            self._lock = _locked(self.path)
            if self._lock is None or os.path.isdir(self.path):
                break
            os.close(self._lock)
        self._end = weakref.finalize(self, _end, self.path, self._lock)

    def release(self) -> None:
        """Give up the claim; the folder stays, or is gone under another name."""
        if self._end.detach() and self._lock is not None:
            os.close(self._lock)

    def remove(self) -> None:
        """Remove the folder with all that is in it; done at the latest when nothing refers to this object."""
        self._end()


def _end(path: str, lock: int | None) -> None:
    shutil.rmtree(path, ignore_errors=True)
    if lock is not None:
        os.close(lock)


def _locked(path: str) -> int | None:
    """A descriptor that holds the folder's lock until it is closed; None where there are no locks, or another has it."""
    if fcntl is None:
        return None
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


def remove_abandoned(parent: str, names: re.Pattern[str]) -> int:
    """Remove the folders in `parent` whose whole name matches and whose maker is gone; how many."""
    try:
        found = [name for name in os.listdir(parent) if names.fullmatch(name)]
    except OSError:
        return 0
    count = 0
    for name in found:
        path = os.path.join(parent, name)
        if os.path.islink(path) or (descriptor := _locked(path)) is None:
            continue
        with contextlib.suppress(OSError):
            if os.stat(path).st_uid == os.getuid():
                shutil.rmtree(path, ignore_errors=True)
                count += 1
        os.close(descriptor)
    return count


def scratch_folder() -> ClaimedFolder:
    """An own folder for temporary files; those of killed processes are removed on the way."""
    remove_abandoned(tempfile.gettempdir(), re.compile(re.escape(_SCRATCH) + r"\w+"))
    return ClaimedFolder(lambda: tempfile.mkdtemp(prefix=_SCRATCH))


@contextlib.contextmanager
def scratch_path() -> Iterator[str]:
    """The path of a scratch folder that is removed at the end."""
    folder = scratch_folder()
    try:
        yield folder.path
    finally:
        folder.remove()
