"""The training process's side of DataLoader workers: gives every worker its recording, and notes which batch was waited for when."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import time
import weakref
from typing import Any

from explorer.collectors.capture.loader_worker import WorkerInit

Wait = tuple[int, int, int, int]
"""Iterator, number of the batch, when it was asked for, when it was there."""


class LoaderWatch:
    """Wraps the iterator of DataLoaders with workers while a capture runs."""

    def __init__(self, user_code: tuple[str, ...], library_code: tuple[str, ...]) -> None:
        self._user_code = user_code
        self._library_code = library_code
        self._folder: str | None = None
        self._process = os.getpid()
        self._loaders: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self._iterators: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self._count = 0
        self._waits: list[Wait] = []
        self._undo: list[tuple[Any, str, Any, Any]] = []

    def start(self) -> None:
        try:
            from torch.utils.data.dataloader import _MultiProcessingDataLoaderIter as owner
        except ImportError:
            return
        begin, following = owner.__init__, owner._next_data

        def __init__(iterator: Any, loader: Any, *args: Any, **kwargs: Any) -> None:
            wanted = loader.worker_init_fn
            try:
                loader.worker_init_fn = self._wrapped(loader, wanted)
                number = self._count
            except Exception:
                number = 0
            try:
                begin(iterator, loader, *args, **kwargs)
            finally:
                if number:
                    loader.worker_init_fn = wanted
            if number:
                self._iterators[iterator] = number

        def _next_data(iterator: Any) -> Any:
            asked = time.time_ns()
            data = following(iterator)
            with contextlib.suppress(Exception):
                if number := self._iterators.get(iterator):
                    self._waits.append((number, iterator._rcvd_idx - 1, asked, time.time_ns()))
            return data

        for name, ours, original in (("__init__", __init__, begin), ("_next_data", _next_data, following)):
            setattr(owner, name, ours)
            self._undo.append((owner, name, ours, original))

    def _wrapped(self, loader: Any, wanted: Any) -> WorkerInit:
        if self._folder is None:
            self._folder = tempfile.mkdtemp(prefix="neuron-explorer-workers-")
        number = self._loaders.setdefault(loader, len(self._loaders) + 1)
        self._count += 1
        return WorkerInit(wanted, self._folder, number, self._count, self._user_code, self._library_code)

    def take(self) -> tuple[list[dict[str, Any]], list[Wait]]:
        """What workers handed over and what was waited for since the last call."""
        waits, self._waits = self._waits, []
        pieces: list[dict[str, Any]] = []
        if self._folder is None or not os.path.isdir(self._folder):
            return pieces, waits
        import msgspec

        for name in sorted(os.listdir(self._folder)):
            if not name.endswith(".piece"):
                continue
            path = os.path.join(self._folder, name)
            with contextlib.suppress(OSError, msgspec.DecodeError):
                with open(path, "rb") as file:
                    pieces.append(msgspec.msgpack.decode(file.read()))
                os.unlink(path)
        return pieces, waits

    def stop(self) -> None:
        """New workers are not recorded; those that run may still hand over."""
        for owner, name, ours, original in self._undo:
            if getattr(owner, name, None) is ours:
                setattr(owner, name, original)
        self._undo.clear()

    def dismiss(self) -> None:
        """Recording is over for the workers, too: they notice that the folder is gone."""
        if self._folder is not None and os.getpid() == self._process:
            shutil.rmtree(self._folder, ignore_errors=True)
