"""Imported traces, kept by content: reading the same file again costs nothing."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import time
from dataclasses import dataclass
from typing import Any

import explorer
from explorer.collectors.claimed_folder import remove_abandoned
from explorer.collectors.new_run import UNFINISHED
from explorer.collectors.options import DEFAULTS, ImportOptions, Progress
from explorer.model.errors import UsageError
from explorer.model.schema import SCHEMA_VERSION
from explorer.store.reader import is_run

_SETTLED_NS = 2_000_000_000
"""A file changed less than this before it was read may change again without its times showing it."""
VARIABLE = "NEURON_EXPLORER_CACHE"
IMPORT_VERSION = 3
"""Raised whenever an importer gives other rows for the same input."""


def default_directory() -> str:
    """$NEURON_EXPLORER_CACHE, else neuron-explorer in the user's cache folder."""
    if wanted := os.environ.get(VARIABLE):
        return os.path.abspath(os.path.expanduser(wanted))
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "neuron-explorer")


@dataclass(frozen=True, slots=True)
class Entry:
    """One cached run: where it came from and what it takes."""

    key: str
    directory: str
    sources: list[str]
    size_bytes: int
    used_ns: int


class RunCache:
    """Runs below `directory`/runs/<key>, the key being a hash of the input's content and of the importer's version.

    `seen.json` remembers the hash of files by path, size and time of change, so that an unchanged file is not even read.
    """

    def __init__(self, directory: str | None = None) -> None:
        self.directory = directory or default_directory()
        self._runs = os.path.join(self.directory, "runs")
        self._seen = os.path.join(self.directory, "seen.json")

    def run_of(self, path: str, progress: Progress | None = None, options: ImportOptions = DEFAULTS) -> str:
        """The cached run of a trace or a directory of traces; imports it where there is none yet."""
        from explorer.collectors.import_trace import import_trace

        key = self._key(path)
        directory = os.path.join(self._runs, key)
        if not is_run(directory):
            try:
                os.makedirs(self._runs, exist_ok=True)
            except OSError as error:
                raise UsageError(
                    f"Cannot write the cache {self.directory}: {error.strerror or error}.",
                    f"Set {VARIABLE} to a directory, or import with -o.",
                ) from error
            made = import_trace([path], directory, options=options, progress=progress).directory
            if made != directory:
                # Another process was faster.
                shutil.rmtree(made, ignore_errors=True)
                return directory
            self._describe(key, path)
        with contextlib.suppress(OSError):
            os.utime(directory)
        return directory

    def entries(self) -> list[Entry]:
        """What the cache holds, the most recently used first."""
        result = []
        for key in sorted(os.listdir(self._runs)) if os.path.isdir(self._runs) else []:
            directory = os.path.join(self._runs, key)
            if not is_run(directory):
                continue
            sources: list[str] = []
            with (
                contextlib.suppress(OSError, ValueError, KeyError),
                open(os.path.join(directory, "source.json")) as file,
            ):
                sources = [str(source) for source in json.load(file)["sources"]]
            used = os.stat(directory).st_mtime_ns
            result.append(Entry(key, directory, sources, _size(directory), used))
        return sorted(result, key=lambda entry: -entry.used_ns)

    def clear(self) -> tuple[int, int]:
        """Remove every cached run and what killed imports have left; how many runs there were, and the bytes freed.

        Runs that other processes are importing just now stay.
        """
        entries = self.entries()
        before = _size(self._runs)
        for entry in entries:
            shutil.rmtree(entry.directory, ignore_errors=True)
        remove_abandoned(self._runs, UNFINISHED)
        freed = before - _size(self._runs)
        with contextlib.suppress(OSError):
            os.rmdir(self._runs)
        with contextlib.suppress(OSError):
            os.remove(self._seen)
        return len(entries), freed

    def _describe(self, key: str, path: str) -> None:
        document = {"sources": [os.path.abspath(path)], "imported_ns": time.time_ns()}
        with contextlib.suppress(OSError), open(os.path.join(self._runs, key, "source.json"), "w") as file:
            json.dump(document, file)

    def _key(self, path: str) -> str:
        """Hash of the content of a file, or of every file of a directory with its relative name."""
        digest = hashlib.sha256(f"{SCHEMA_VERSION} {explorer.__version__} {IMPORT_VERSION}".encode())
        seen = self._load()
        before = dict(seen)
        if os.path.isdir(path):
            for folder, names, files in os.walk(path):
                names.sort()
                for name in sorted(files):
                    file = os.path.join(folder, name)
                    if os.path.isfile(file):
                        digest.update(_bytes(f"{os.path.relpath(file, path)}\0{_content(file, seen)}\0"))
        else:
            # The name can tell the rank, so it belongs to the input.
            digest.update(_bytes(f"{os.path.basename(path)}\0{_content(path, seen)}"))
        if seen != before:
            self._save(seen)
        return digest.hexdigest()[:32]

    def _load(self) -> dict[str, Any]:
        try:
            with open(self._seen) as file:
                known = json.load(file)
        except (OSError, ValueError):
            return {}
        return known if isinstance(known, dict) else {}

    def _save(self, seen: dict[str, Any]) -> None:
        temporary = f"{self._seen}.{os.getpid()}.tmp"
        with contextlib.suppress(OSError):
            os.makedirs(self.directory, exist_ok=True)
            with open(temporary, "w") as file:
                json.dump(seen, file)
            os.replace(temporary, self._seen)


def _bytes(text: str) -> bytes:
    # Names of files need not be UTF-8.
    return text.encode("utf-8", "surrogatepass")


def _content(path: str, seen: dict[str, Any]) -> str:
    """SHA-256 of a file, from memory where neither size, times of change nor inode have changed since, and these tell."""
    from explorer.model.errors import InputError

    try:
        stamp = _stamp(path)
        known = seen.get(os.path.abspath(path))
        if isinstance(known, list) and known[:4] == stamp:
            return str(known[4])
        with open(path, "rb") as file:
            now = time.time_ns()
            value = hashlib.file_digest(file, "sha256").hexdigest()
        settled = now - max(stamp[1], stamp[2]) > _SETTLED_NS and _stamp(path) == stamp
    except OSError as error:
        what = (
            "does not exist" if isinstance(error, FileNotFoundError) else f"cannot be read: {error.strerror}"
        )
        raise InputError(f"{path} {what}.", "Check the path.") from error
    if settled:
        seen[os.path.abspath(path)] = [*stamp, value]
    else:
        seen.pop(os.path.abspath(path), None)
    return value


def _stamp(path: str) -> list[int]:
    status = os.stat(path)
    return [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino]


def _size(directory: str) -> int:
    return sum(
        os.path.getsize(os.path.join(folder, name))
        for folder, _, files in os.walk(directory)
        for name in files
    )
