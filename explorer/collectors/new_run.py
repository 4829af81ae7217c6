"""Where a new run is written: beside its name, which it takes in one rename once it is whole."""

from __future__ import annotations

import errno
import itertools
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from explorer.collectors.claimed_folder import ClaimedFolder, remove_abandoned
from explorer.model.errors import UsageError
from explorer.store.location import Location
from explorer.store.reader import RunReader, is_run

_TAKEN = (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR, errno.EISDIR)
_numbers = itertools.count()
UNFINISHED = re.compile(r"\..+\.\d+-\d+\.importing", re.DOTALL)
"""Names of the folders in which runs are being built"""


@dataclass
class NewRun:
    """`target` is where the run will lie, `building` where its parts are written: the same on an object store.

    At the end of `new_run` the target may have become another: someone else took the name meanwhile.
    """

    target: Location
    building: Location

    @property
    def directory(self) -> str:
        """The target as a user names it: a local path or a URL."""
        return url_of(self.target)

    @property
    def writing_to(self) -> str:
        """`building` as RunWriter takes it."""
        return url_of(self.building)


def finished_ranks(location: Location) -> set[int]:
    """The ranks that a run holds whole, and those whose manifest cannot be read: nothing is written over either.

    Raises InputError where none can be read.
    """
    reader = RunReader(url_of(location))
    return {rank for rank, manifest in reader.manifests.items() if manifest.finished} | set(reader.unreadable)


@contextmanager
def new_run(directory: str | os.PathLike[str], *, add: bool = False) -> Iterator[NewRun]:
    """A place for a new run; NAME-2, NAME-3 ... where NAME holds one. A local run appears whole when the block ends, and not
    at all when it fails; on an object store ranks appear one by one. What killed imports have left beside it is removed.

    With `add` it is the run that is there: its ranks stay as they are, and new ones appear one by one.

    Raises UsageError where nothing can be written there, or with `add` where no run is.
    """
    if add:
        there = Location.of(directory)
        if not _holds_run(there):
            raise UsageError(f"{url_of(there)} is no run to add to.", "Leave --add out to make a new one.")
        yield NewRun(there, there)
        return
    target = _free_target(directory)
    if not target.is_local:
        yield NewRun(target, target)
        return
    folder = _building_place(target)
    place = NewRun(target, Location(folder.path))
    try:
        yield place
        place.target = _take_name(place.building, target, Location.of(directory))
    except BaseException:
        folder.remove()
        raise
    folder.release()


def url_of(location: Location) -> str:
    """A location as text that `Location.of` reads."""
    if location.filesystem is None:
        return location.root
    return str(location.filesystem.unstrip_protocol(location.root))


def _free_target(directory: str | os.PathLike[str]) -> Location:
    wanted = Location.of(directory).of_run()
    candidate, number = wanted, 2
    while _holds_run(candidate):
        candidate = wanted.sibling(number)
        number += 1
    if candidate.is_local and os.path.lexists(candidate.root):
        if not os.path.isdir(candidate.root):
            raise UsageError(f"{candidate.root} is a file.", "Choose another directory with -o.")
        if os.listdir(candidate.root):
            raise UsageError(
                f"{candidate.root} holds other files.", "Choose a new or empty directory with -o."
            )
    return candidate


def _take_name(building: Location, target: Location, wanted: Location) -> Location:
    """Rename a whole run to its target, or to the next free NAME-2, NAME-3 ... where the target was taken meanwhile."""
    for candidate in itertools.chain((target,), map(wanted.sibling, itertools.count(2))):
        try:
            os.replace(building.root, candidate.root)
        except OSError as error:
            if error.errno not in _TAKEN:
                raise UsageError(
                    f"Cannot write the run to {candidate.root}: {error.strerror or error}.",
                    "Choose another directory with -o.",
                ) from error
            continue
        return candidate
    raise AssertionError("the numbers end never")


def _holds_run(candidate: Location) -> bool:
    if candidate.is_local:
        return is_run(candidate.root)
    return candidate.exists("manifests")


def _building_place(target: Location) -> ClaimedFolder:
    parent, name = os.path.split(target.root)
    remove_abandoned(parent, UNFINISHED)

    def make() -> str:
        while True:
            place = os.path.join(parent, f".{name}.{os.getpid()}-{next(_numbers)}.importing")
            try:
                os.makedirs(place)
            except FileExistsError:
                continue
            return place

    try:
        return ClaimedFolder(make)
    except OSError as error:
        raise UsageError(
            f"Cannot write the run to {target.root}: {error.strerror or error}.",
            "Choose another directory with -o.",
        ) from error
