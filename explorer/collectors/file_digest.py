"""The SHA-256 of an input, for the manifest."""

from __future__ import annotations

import contextlib
import hashlib
import threading


class FileDigest:
    """SHA-256 of a file, computed beside the import."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._value: str | None = None
        self._thread = threading.Thread(target=self._compute, daemon=True)
        self._thread.start()

    def _compute(self) -> None:
        with contextlib.suppress(OSError), open(self._path, "rb") as file:
            self._value = hashlib.file_digest(file, "sha256").hexdigest()

    def join(self) -> str | None:
        """The digest, once it is there; None where the file cannot be read."""
        self._thread.join()
        return self._value
