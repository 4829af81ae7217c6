"""A copy of a run elsewhere, sharing its files with it where the file system can."""

from __future__ import annotations

import os
import shutil

from explorer.collectors.new_run import new_run
from explorer.model.errors import UsageError


def copy_run(source: str, directory: str) -> str:
    """Copy a local run to a local directory, or to NAME-2 ... where a run is there already; where it went.

    Raises UsageError where it cannot be written.
    """
    with new_run(directory) as place:
        if not place.target.is_local:
            raise UsageError(
                "A run from the cache is copied to local folders only.", "Import without --cache-dir."
            )
        try:
            shutil.copytree(source, place.building.root, copy_function=_link_or_copy, dirs_exist_ok=True)
        except (OSError, shutil.Error) as error:
            raise UsageError(
                f"Cannot write the run to {place.target.root}: {getattr(error, 'strerror', None) or error}.",
                "Free space, or choose another directory with -o.",
            ) from error
    return place.directory


def _link_or_copy(source: str, target: str) -> str:
    # Parts are never changed once they are written; manifests are.
    if source.endswith(".parquet"):
        try:
            os.link(source, target)
            return target
        except OSError:
            pass
    return shutil.copy2(source, target)
