"""From what a user names (files, directories, globs) to the sources in them."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from explorer.collectors.source import Limits, Source, open_source
from explorer.model.errors import InputError


@dataclass
class Inputs:
    """`named` sources were given one by one; `found` ones lay in a directory or an archive; `skipped` says which files could not be opened,
    `refused` has the errors of those that were named."""

    named: list[Source] = field(default_factory=list)
    found: list[Source] = field(default_factory=list)
    skipped: list[tuple[str, str]] = field(default_factory=list)
    refused: list[InputError] = field(default_factory=list)
    directories: list[str] = field(default_factory=list)


def find_inputs(paths: Iterable[str | os.PathLike[str]], limits: Limits) -> Inputs:
    """Open everything that the paths name, in natural order (rank 2 before rank 10).

    A path that exists is taken as it is, also when it holds glob characters; one that does not is tried as a glob. A file
    that is missing, empty or unreadable costs only itself. Raises InputError for a glob without matches, a directory that
    cannot be read, and a symbolic link inside a directory that leads out of it.
    """
    result = Inputs()
    for path in (os.fspath(given) for given in paths):
        matches = [path]
        if not os.path.lexists(path) and glob.has_magic(path):
            matches = sorted(glob.glob(path, recursive=True), key=natural_order)
            if not matches:
                raise InputError(f"No file matches {path}.", "Check the pattern.")
        for match in matches:
            if os.path.isdir(match):
                result.directories.append(match)
                for file in _files(match, result.skipped):
                    try:
                        result.found += open_source(file, limits)
                    except InputError as error:
                        result.skipped.append((file, error.message))
            else:
                try:
                    sources = open_source(match, limits)
                    # An archive of several files is a directory: what is no trace in it is passed over.
                    (result.found if len(sources) > 1 else result.named).extend(sources)
                except InputError as error:
                    result.skipped.append((match, error.message))
                    result.refused.append(error)
    return result


def natural_order(path: str) -> list[tuple[int, int, str]]:
    """A sort key in which numbers count as numbers."""
    return [
        (0, int(part), "") if part.isdigit() else (1, 0, part) for part in re.split(r"(\d+)", path) if part
    ]


def _files(directory: str, skipped: list[tuple[str, str]]) -> Iterator[str]:
    """Regular files below a directory; hidden ones and finished runs are left out, folders that cannot be read are
    added to `skipped`. Raises InputError where that is the directory itself."""
    root = os.path.realpath(directory)

    def unread(error: OSError) -> None:
        message = f"{error.filename} cannot be read: {error.strerror}."
        if error.filename == directory:
            raise InputError(message, "Check its permissions.") from error
        skipped.append((error.filename, message))

    for folder, names, files in os.walk(directory, onerror=unread):
        names[:] = sorted((n for n in names if not n.startswith(".")), key=natural_order)
        if "manifests" in names:
            names[:] = []
            continue
        for name in sorted(files, key=natural_order):
            path = os.path.join(folder, name)
            if name.startswith("."):
                continue
            if os.path.islink(path) and not os.path.realpath(path).startswith(root + os.sep):
                raise InputError(
                    f"{path} is a symbolic link that leads out of {directory}.",
                    "Name the files themselves if you trust them.",
                )
            if os.path.isfile(path):
                yield path
