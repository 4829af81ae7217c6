"""Where a run lies: a local directory or any object store that fsspec opens."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from explorer.model.errors import InputError, MissingExtra, UsageError

if TYPE_CHECKING:
    import fsspec


def is_remote(path: str | os.PathLike[str]) -> bool:
    """Whether a path is a URL of something else than a local file."""
    text = os.fspath(path)
    return "://" in text and not text.startswith("file://")


def open_store(
    url: str, storage_options: dict[str, Any] | None = None
) -> tuple[fsspec.AbstractFileSystem, str]:
    """The store that a URL names, and the path in it.

    Raises MissingExtra where the package for stores is absent, InputError where the store cannot be opened.
    """
    try:
        import fsspec

        filesystem, path = fsspec.core.url_to_fs(url, **(storage_options or {}))
    except ModuleNotFoundError as error:
        raise MissingExtra(error.name or "fsspec", "cloud", f"Opening {url}") from error
    # Each kind of store raises errors of its own.
    except Exception as error:
        raise _unopened(url, error) from error
    return filesystem, str(path)


def why(error: Exception) -> str:
    """What an error of a store says, in one line without the full stop."""
    return " ".join(str(error).split()).rstrip(".") or type(error).__name__


def _unopened(url: str, error: Exception) -> InputError:
    return InputError(
        f"{url} cannot be opened: {why(error)}.",
        "Check the address, the credentials and the package for its store.",
    )


def _local_root(path: str) -> str:
    """The absolute form of a local path. Raises UsageError for one that the system has no name for."""
    if "\0" in path:
        raise UsageError(
            "The path of the run holds a NUL character.", "Give a run directory or a trace file."
        )
    return os.path.abspath(path)


@dataclass(frozen=True)
class Location:
    """A run's directory. `root` is an absolute local path, or a path inside `filesystem` where that is not None."""

    root: str
    filesystem: fsspec.AbstractFileSystem | None = None

    @classmethod
    def of(cls, directory: str | os.PathLike[str], storage_options: dict[str, Any] | None = None) -> Location:
        """Local paths need no fsspec; `scheme://` URLs are opened through it.

        Raises UsageError for a path that is empty or holds NUL, InputError for a store that does not open.
        """
        text = os.fspath(directory)
        if not text:
            raise UsageError("The path of the run is empty.", "Give a run directory or a trace file.")
        if "://" not in text:
            return cls(_local_root(text))
        if text.startswith("file://"):
            return cls(_local_root(text.removeprefix("file://")))
        filesystem, root = open_store(text, storage_options)
        return cls(root.rstrip("/"), filesystem)

    def of_run(self) -> Location:
        """Itself. Raises UsageError where no run can lie: Parquet and SQL name files in UTF-8."""
        try:
            self.root.encode()
        except UnicodeEncodeError as error:
            raise UsageError(
                f"The path {self.root} is not UTF-8, and no run can lie there.",
                "Rename the folder, or give another one.",
            ) from error
        return self

    @property
    def is_local(self) -> bool:
        return self.filesystem is None

    def sibling(self, number: int) -> Location:
        """NAME-<number> beside this one."""
        return Location(f"{self.root}-{number}", self.filesystem)

    def join(self, relative: str) -> str:
        return f"{self.root}/{relative}"

    def exists(self, relative: str = "") -> bool:
        path = self.join(relative) if relative else self.root
        return os.path.exists(path) if self.filesystem is None else bool(self.filesystem.exists(path))

    def make_folder(self, relative: str) -> None:
        if self.filesystem is None:
            os.makedirs(self.join(relative), exist_ok=True)

    def read(self, relative: str) -> bytes:
        if self.filesystem is None:
            with open(self.join(relative), "rb") as file:
                return file.read()
        return bytes(self.filesystem.cat_file(self.join(relative)))

    def replace(self, relative: str, data: bytes) -> None:
        """Write whole or not at all: rename on a local disk, one put on an object store."""
        path = self.join(relative)
        if self.filesystem is not None:
            self.filesystem.pipe_file(path, data)
            return
        temporary = f"{path}.{os.getpid()}.tmp"
        with open(temporary, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)

    def list_folder(self, relative: str) -> list[str]:
        """Names in a folder, sorted; empty where there is none. Raises InputError where it cannot be read."""
        path = self.join(relative)
        if self.filesystem is None:
            try:
                return sorted(os.listdir(path))
            except (FileNotFoundError, NotADirectoryError):
                return []
            except OSError as error:
                raise InputError(
                    f"{self.root} cannot be read: {error.strerror or error}.",
                    "Check the path and its permissions.",
                ) from error
        try:
            if not self.filesystem.exists(path):
                return []
            names = self.filesystem.ls(path, detail=False, refresh=True)
        except Exception as error:
            raise _unopened(str(self.filesystem.unstrip_protocol(self.root)), error) from error
        return sorted(str(name).rsplit("/", 1)[-1] for name in names)

    def remove(self, relative: str) -> None:
        """Remove a file."""
        path = self.join(relative)
        os.remove(path) if self.filesystem is None else self.filesystem.rm_file(path)

    def size(self, relative: str) -> int:
        if self.filesystem is None:
            return os.path.getsize(self.join(relative))
        return int(self.filesystem.size(self.join(relative)))
