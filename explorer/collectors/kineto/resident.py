"""A bound on the memory that an import holds: beyond it, numpy's large arrays go to files of the temporary folder.

The arrays stay what they are for those who use them. What is resident of them the compiled part (`scratch/`) gives up whenever
the process holds more than it may; the next access finds it in the file. Without that part (no C compiler at installation, or
another system than Linux) arrays stay in memory.
"""

from __future__ import annotations

import errno
import os
import threading
from types import TracebackType
from typing import Any

import numpy as np

from explorer.collectors.claimed_folder import ClaimedFolder, scratch_folder
from explorer.collectors.kineto.compiled import compiled_scratch
from explorer.model.errors import UsageError

ROW_BYTES = 160
"""Memory that linking takes per row of the source where all of it stays in memory, as measured."""
LEAST_BYTES = 1 << 20
"""Smaller arrays stay in memory: they take a file each."""
_ROOM = 6
"""This part of the bound is left free: memory grows on between two looks at it."""
_lock = threading.Lock()


def _interface() -> Any:
    """numpy's table of C functions."""
    core = getattr(np, "_core", None) or np.core  # type: ignore[attr-defined]
    return core._multiarray_umath._ARRAY_API


class Resident:
    """The bound of one import: `limit_bytes` for this process, of which linking leaves `held_bytes` to others. From `begin` to
    `close` arrays made in the calling thread, and in contexts copied from its own, count. One import of a process at a time is
    bounded."""

    def __init__(self, limit_bytes: int, held_bytes: int, least_bytes: int = LEAST_BYTES) -> None:
        self.limit_bytes = limit_bytes
        self._held = held_bytes
        self._least = least_bytes
        self._part = compiled_scratch()
        self._folder: ClaimedFolder | None = None
        self._before: Any = None

    @property
    def active(self) -> bool:
        """Whether large arrays go to files."""
        return self._folder is not None

    @property
    def affordable_rows(self) -> int:
        """Rows that can be linked in memory."""
        return max(0, self.limit_bytes - self._held) // ROW_BYTES

    def expect(self, rows: int) -> None:
        """Begin where so many rows need more memory than there is."""
        if rows > self.affordable_rows and not self.active:
            self.begin()

    def begin(self) -> None:
        """From now on large arrays go to files."""
        if self._part is None or self.active or not _lock.acquire(blocking=False):
            return
        folder = scratch_folder()
        self._part.begin(folder.path, self._least, self.limit_bytes - self.limit_bytes // _ROOM)
        self._before = self._part.use(_interface(), None)
        self._folder = folder

    def state(self) -> tuple[int, int, int]:
        """Bytes in files now and at most, and how often their memory was given up."""
        now, most, times, _ = self._part.state() if self._part is not None else (0, 0, 0, 0)
        return now, most, times

    def close(self) -> None:
        """Arrays made from now on stay in memory."""
        if self._folder is None or self._part is None:
            return
        self._part.use(_interface(), self._before)
        self._part.end()
        self._folder.remove()
        self._folder = self._before = None
        _lock.release()

    def __enter__(self) -> Resident:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        reason = self._part.state()[3] if self.active and self._part is not None else 0
        folder = os.path.dirname(self._folder.path) if self._folder is not None else ""
        self.close()
        if isinstance(error, MemoryError) and reason:
            what = "is full" if reason in (errno.ENOSPC, errno.EDQUOT) else f"({os.strerror(reason)})"
            raise UsageError(
                f"The temporary folder {folder} {what}: linking a trace of this size needs more room there.",
                "Free space, name another folder in TMPDIR, or allow more memory with --memory-mib.",
            ) from error
