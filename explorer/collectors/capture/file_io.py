"""File input and output inside the recorded code: what was opened, read and written, for how long, at which line.

While recording, `open` hands out the very objects it always does (TextIOWrapper, BufferedReader ...), only that the raw
file at their bottom times its system calls: reads that the buffer answers cost and record nothing. torch.save, which
writes from C++, is timed as a whole. What does not go through these (mmap, sockets, os.read, C++ readers) is not seen.
"""

from __future__ import annotations

import builtins
import io
import json
import os
import threading
import time
from collections.abc import Callable
from typing import Any

from explorer.collectors.capture.host_event import HostEvent
from explorer.collectors.capture.pinned_lines import NO_PINS, PinnedLines

MERGE_GAP_NS = 10_000
"""System calls on one file closer together than this become one event."""

MAX_EVENTS = 20_000
"""Most events kept per window; the rest is only counted."""

_open = io.open


class FileIoRecorder:
    """Installed for the whole capture, active while `enabled`."""

    def __init__(self, pins: PinnedLines = NO_PINS) -> None:
        self.enabled = False
        self.pins = pins
        self.dropped = 0
        self._events: list[HostEvent] = []
        self._opened = self._make_open()
        self._save: Callable[..., Any] | None = None
        self._saved: Callable[..., Any] | None = None

    def start(self) -> None:
        if builtins.open is _open:
            builtins.open = self._opened
            io.open = self._opened
        self._wrap_torch_save()

    def stop(self) -> None:
        """Put everything back, unless somebody else replaced it since."""
        self.enabled = False
        if builtins.open is self._opened:
            builtins.open = _open
        if io.open is self._opened:
            io.open = _open
        if self._saved is not None:
            import torch

            for module in (torch, torch.serialization):
                if getattr(module, "save", None) is self._saved:
                    setattr(module, "save", self._save)  # noqa: B010
            self._saved = None

    def take(self) -> list[HostEvent]:
        events, self._events = self._events, []
        return events

    def add(self, event: HostEvent) -> None:
        if len(self._events) < MAX_EVENTS:
            self._events.append(event)
        else:
            self.dropped += 1

    def _make_open(self) -> Any:
        recorder = self

        def open(  # noqa: A001
            file: Any,
            mode: str = "r",
            buffering: int = -1,
            encoding: str | None = None,
            errors: str | None = None,
            newline: str | None = None,
            closefd: bool = True,
            opener: Any = None,
        ) -> Any:
            plain = (
                recorder.enabled and isinstance(mode, str) and isinstance(buffering, int) and buffering != 0
            )
            if not plain or not isinstance(file, str | bytes | os.PathLike) or not _ordinary(mode):
                return _open(file, mode, buffering, encoding, errors, newline, closefd, opener)
            binary = "b" in mode
            if binary and (encoding is not None or errors is not None or newline is not None):
                return _open(file, mode, buffering, encoding, errors, newline, closefd, opener)
            if binary and buffering == 1:
                return _open(file, mode, buffering)
            raw = _TimedFile(recorder, os.fspath(file), mode, closefd, opener)
            try:
                return _layers(raw, mode, buffering, encoding, errors, newline)
            except BaseException:
                raw.close()
                raise

        open.__doc__ = _open.__doc__
        return open

    def _wrap_torch_save(self) -> None:
        import torch

        original = torch.save
        recorder = self

        def save(obj: Any, f: Any, *args: Any, **kwargs: Any) -> Any:
            if not recorder.enabled:
                return original(obj, f, *args, **kwargs)
            begin = recorder.pins.now()
            try:
                return original(obj, f, *args, **kwargs)
            finally:
                duration = time.time_ns() - begin
                path = os.fspath(f) if isinstance(f, str | os.PathLike) else None
                size = None
                if path is not None and os.path.exists(path):
                    size = os.path.getsize(path)
                recorder.add(
                    HostEvent(
                        threading.get_native_id(),
                        "io",
                        "torch.save",
                        begin,
                        duration,
                        json.dumps({"path": str(path)}) if path is not None else None,
                        size,
                    )
                )

        save.__doc__ = original.__doc__
        save.__wrapped__ = original  # type: ignore[attr-defined]
        self._save, self._saved = original, save
        torch.save = torch.serialization.save = save


def _ordinary(mode: str) -> bool:
    """One of r, w, a, x with at most one each of +, b, t: anything else is left to the real open to refuse."""
    return (
        len(mode) == len(set(mode))
        and set(mode) <= set("rwax+bt")
        and sum(letter in mode for letter in "rwax") == 1
        and not ("b" in mode and "t" in mode)
    )


def _layers(
    raw: _TimedFile, mode: str, buffering: int, encoding: str | None, errors: str | None, newline: str | None
) -> Any:
    """The buffered and text layers that io.open puts on a raw file."""
    binary = "b" in mode
    line_buffering = buffering == 1 and not binary
    if buffering < 0 and raw.isatty():
        buffering, line_buffering = -1, not binary
    size = buffering if buffering > 1 else max(getattr(raw, "_blksize", 0), 1) or io.DEFAULT_BUFFER_SIZE
    if size <= 1:
        size = io.DEFAULT_BUFFER_SIZE
    layer: Any
    if "+" in mode:
        layer = io.BufferedRandom(raw, size)
    elif "r" in mode:
        layer = io.BufferedReader(raw, size)
    else:
        layer = io.BufferedWriter(raw, size)
    if binary:
        return layer
    text = io.TextIOWrapper(layer, io.text_encoding(encoding), errors, newline, line_buffering)
    text.mode = mode  # type: ignore[misc]
    return text


class _TimedFile(io.FileIO):
    """A raw file that times its system calls."""

    def __init__(self, recorder: FileIoRecorder, file: Any, mode: str, closefd: bool, opener: Any) -> None:
        self._recorder = recorder
        self._path = os.fsdecode(file)
        self._call: tuple[str, int] | None = None
        self._begin = self._end = self._bytes = self._calls = 0
        begin = recorder.pins.now()
        super().__init__(file, mode.replace("b", "").replace("t", ""), closefd, opener)
        if recorder.enabled:
            recorder.add(self._event("open", threading.get_native_id(), begin, time.time_ns(), None, 1))

    def _event(
        self, name: str, native_id: int, begin: int, end: int, size: int | None, calls: int
    ) -> HostEvent:
        attributes = json.dumps({"path": self._path, "calls": calls} if calls > 1 else {"path": self._path})
        return HostEvent(native_id, "io", name, begin, end - begin, attributes, size)

    def _timed(self, name: str, begin: int, size: int | None) -> None:
        end = time.time_ns()
        if not self._recorder.enabled:
            return
        key = (name, threading.get_native_id())
        if self._call == key and begin - self._end < MERGE_GAP_NS:
            self._end = end
            self._bytes += size or 0
            self._calls += 1
            return
        self._flush_event()
        self._call, self._begin, self._end, self._bytes, self._calls = key, begin, end, size or 0, 1

    def _flush_event(self) -> None:
        if self._call is not None:
            name, native_id = self._call
            self._recorder.add(self._event(name, native_id, self._begin, self._end, self._bytes, self._calls))
            self._call = None

    def _now(self) -> int:
        now = time.time_ns()
        return now if self._call is not None and now - self._end < MERGE_GAP_NS else self._recorder.pins.now()

    def readinto(self, buffer: Any) -> int | None:  # type: ignore[override]
        begin = self._now()
        count = super().readinto(buffer)
        self._timed("read", begin, count)
        return count

    def readall(self) -> bytes:
        begin = self._now()
        data = super().readall()
        self._timed("read", begin, len(data) if data is not None else 0)
        return data

    def write(self, data: Any) -> int | None:  # type: ignore[override]
        begin = self._now()
        count = super().write(data)
        self._timed("write", begin, count)
        return count

    def close(self) -> None:
        begin = self._now()
        was_open = not self.closed
        super().close()
        if was_open:
            self._flush_event()
            if self._recorder.enabled and time.time_ns() - begin > MERGE_GAP_NS:
                self._recorder.add(
                    self._event("close", threading.get_native_id(), begin, time.time_ns(), None, 1)
                )
