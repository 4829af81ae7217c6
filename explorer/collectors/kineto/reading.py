"""Reading and writing the chunks of a trace: one after the other while it is small; when it is large, several at once, in
threads where the compiled scanner is there, else in worker processes."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import partial
from types import TracebackType
from typing import Any

import msgspec
import pyarrow as pa

from explorer.collectors.kineto.compiled import compiled
from explorer.collectors.kineto.group import Written, write_group
from explorer.collectors.kineto.light import Distilled, LightGatherer, LightRows, distil
from explorer.collectors.kineto.resident import Resident
from explorer.collectors.kineto.rows import read_rows, repeats_of, without_links
from explorer.collectors.kineto.splitter import CHUNK_BYTES, Chunk, TraceText
from explorer.collectors.kineto.spool import Spool, store
from explorer.collectors.options import ImportOptions
from explorer.collectors.source import Source
from explorer.collectors.workers import Workers
from explorer.model.errors import InputError

PARALLEL_BYTES = 48 << 20
"""Decompressed size from which starting processes pays."""
THREADED_BYTES = 8 << 20
"""The same for threads."""
WORKER_BYTES = 256 << 20
"""Memory that a worker process takes at most, as measured; so many run as the memory setting allows."""
THREAD_BYTES = 160 << 20
"""The same for a thread."""
OWN_BYTES = 256 << 20
"""Memory that an import takes beside these and what linking needs, as measured."""
MEMORY_PER_BYTE = 5
"""Memory that importing a byte of JSON takes where its rows stay in memory, as measured."""
ROOMY_BYTES = 640 << 20
"""With less memory, stretches of text are smaller, and so are the parts of the tables."""
MANY_ROWS = 4_000_000
EXPANSION = 12
"""How much a compressed trace is taken to expand by when deciding that."""


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def chunk_bytes(options: ImportOptions) -> int:
    """How much text is decoded at once, as the memory setting allows."""
    return CHUNK_BYTES if options.memory_bytes >= ROOMY_BYTES else CHUNK_BYTES // 4


def read_and_store(text: bytes, path: str) -> Distilled:
    """Decode a chunk into the scratch folder; the light part is the result."""
    rows = read_rows(text)
    store(without_links(rows), path)
    return _light(rows)


def _light(rows: pa.Table) -> Distilled:
    return replace(distil(rows), repeats=repeats_of(rows))


def read_part_and_store(source: str, offset: int, size: int, path: str) -> Distilled:
    """The same for a stretch of a plain file."""
    with open(source, "rb") as file:
        file.seek(offset)
        text = file.read(size)
    if len(text) != size:
        raise InputError(f"{source} became shorter while it was read.")
    return read_and_store(text, path)


class Threads:
    """`count` threads of this process, used as `Workers` are. The scanner, Arrow and DuckDB work side by side in them."""

    def __init__(self, count: int) -> None:
        self._threads = ThreadPoolExecutor(count)

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Run a function in a thread."""
        return self._threads.submit(function, *arguments)

    def close(self) -> None:
        """End the threads; calls that have not begun are dropped."""
        self._threads.shutdown(cancel_futures=True)


class Reader:
    """Owns the threads or worker processes of one import."""

    def __init__(self, source: Source, options: ImportOptions) -> None:
        size = source.size_bytes * (1 if source.container == "plain" else EXPANSION)
        self._threaded = compiled() is not None
        # Each worker holds a few chunks as text, as columns and as compressed pages.
        worker_bytes = THREAD_BYTES if self._threaded else WORKER_BYTES
        affordable = max(1, (options.memory_bytes - OWN_BYTES) // worker_bytes)
        wanted = min(options.processes or min(_processors(), 8), affordable)
        enough = THREADED_BYTES if self._threaded else PARALLEL_BYTES
        self._count = wanted if size >= enough and wanted > 1 else 0
        self._small = min(4 * PARALLEL_BYTES, options.memory_bytes // MEMORY_PER_BYTE)
        self._in_memory = size < self._small and (self._threaded or not self._count)
        self._decoded = 0
        held = self._count * worker_bytes
        # What other processes hold is not this one's.
        self.own_bytes = options.memory_bytes - (0 if self._threaded else held)
        self.held_bytes = OWN_BYTES + (held if self._threaded else 0)
        self._progress = options.progress
        self._size = source.size_bytes
        self._container = source.container
        self._file = source.path if source.container == "plain" and os.path.isfile(source.path) else None
        self._workers: Workers | Threads | None = None
        self._ahead = self._count + 1 if self._count else 0

    def __enter__(self) -> Reader:
        if self._count:
            self._workers = Threads(self._count) if self._threaded else Workers(self._count)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._workers is not None:
            self._workers.close()

    @property
    def in_processes(self) -> bool:
        """Whether it works in other processes than this."""
        return isinstance(self._workers, Workers)

    def read(self, text: TraceText, spool: Spool, resident: Resident) -> LightRows:
        """Decode every chunk into the spool."""
        gatherer = LightGatherer()
        for distilled in self._distilled(text, spool):
            gatherer.add(distilled)
            resident.expect(gatherer.rows)
            spool.counts.append(distilled.count)
            self._show(text)
        if self._workers is not None and (gatherer.rows > MANY_ROWS or resident.active):
            # Linking happens here alone, and needs the memory more than idle workers do.
            self._workers.close()
            self._workers = type(self._workers)(self._count)
        return gatherer.finish()

    def _distilled(self, text: TraceText, spool: Spool) -> Iterator[Distilled]:
        """The light part of every chunk, in order; workers are a few chunks ahead, so that memory stays bounded."""
        chunks = text.chunks()
        waiting: deque[tuple[Chunk, Callable[[], Distilled]]] = deque()
        while True:
            while len(waiting) <= self._ahead and (chunk := next(chunks, None)) is not None:
                waiting.append((chunk, self._begin(chunk, spool)))
            if not waiting:
                return
            chunk, result = waiting.popleft()
            try:
                distilled = result()
            except (msgspec.DecodeError, RecursionError):
                if chunk.checked:
                    raise
                # Their places in the spool are taken again, so nobody may still write there.
                for _, other in waiting:
                    with suppress(msgspec.DecodeError, RecursionError):
                        other()
                waiting.clear()
                del spool.chunks[len(spool.counts) :]
                chunks = text.again_from(chunk)
                continue
            count, first = distilled.repeats
            if count:
                before, offset = text.repeated
                text.repeated = before + count, offset if before else chunk.offset + first
            yield distilled

    def _begin(self, chunk: Chunk, spool: Spool) -> Callable[[], Distilled]:
        """Start decoding a chunk into the spool; the call gives its light part."""
        function, *arguments = self._call(chunk, spool)
        if self._workers is not None:
            return self._workers.submit(function, *arguments).result
        return partial(function, *arguments)

    @staticmethod
    def _decode(text: bytes, spool: Spool, place: int) -> Distilled:
        rows = read_rows(text)
        spool.chunks[place] = without_links(rows)
        return _light(rows)

    def _call(self, chunk: Chunk, spool: Spool) -> tuple[Any, ...]:
        self._decoded += len(chunk.text)
        # A compressed trace can be larger than it seemed.
        self._in_memory = self._in_memory and self._decoded < self._small
        if self._in_memory:
            spool.chunks.append("")
            return self._decode, chunk.text, spool, len(spool.chunks) - 1
        if isinstance(self._workers, Workers) and self._file is not None and chunk.verbatim:
            # Worker processes read the file themselves: cheaper than sending them its text.
            return read_part_and_store, self._file, chunk.offset, len(chunk.text), self._place(spool)
        return read_and_store, chunk.text, self._place(spool)

    @staticmethod
    def _place(spool: Spool) -> str:
        path = spool.path(len(spool.chunks))
        spool.chunks.append(path)
        return path

    def write(self, tasks: Iterator[tuple[Any, ...]]) -> Iterator[Written]:
        """Write groups, in order."""
        if self._workers is None:
            for task in tasks:
                yield write_group(*task)
        else:
            yield from self._in_order((write_group, *task) for task in tasks)

    def _in_order(self, calls: Iterator[tuple[Any, ...]]) -> Iterator[Any]:
        """Results in the order of the calls, a few calls ahead, so that memory stays bounded."""
        assert self._workers is not None
        waiting: deque[Future[Any]] = deque()
        for call in calls:
            waiting.append(self._workers.submit(*call))
            while len(waiting) > self._count + 1 or (waiting and waiting[0].done()):
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()

    def _show(self, text: TraceText) -> None:
        if self._progress is not None:
            done = text.bytes_read if self._container == "plain" else text.bytes_read // EXPANSION
            self._progress(min(done, self._size), self._size)
