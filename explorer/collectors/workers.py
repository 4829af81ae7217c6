"""Worker processes that run functions of this package. Unlike multiprocessing's, they never run the user's main module again."""

from __future__ import annotations

import contextlib
import importlib
import os
import pickle
import queue
import struct
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import IO, Any

_LENGTH = struct.Struct("<Q")
KEEP_BYTES = 224 << 20
"""A worker that holds more than this gives back what it does not use."""


class WorkerDied(RuntimeError):
    """A worker process ended in the middle of its work, for instance for lack of memory."""


class Workers:
    """`count` processes; each call runs in whichever is free."""

    def __init__(self, count: int) -> None:
        self._calls: queue.Queue[tuple[Future[Any], bytes] | None] = queue.Queue()
        self._threads = [threading.Thread(target=self._serve, daemon=True) for _ in range(count)]
        self._processes: list[subprocess.Popen[bytes]] = []
        for thread in self._threads:
            thread.start()

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Run a module-level function of this package in a worker."""
        future: Future[Any] = Future()
        call = pickle.dumps((function.__module__, function.__name__, arguments), pickle.HIGHEST_PROTOCOL)
        self._calls.put((future, call))
        return future

    def close(self) -> None:
        """End the processes; calls that have not begun are dropped."""
        while True:
            try:
                self._calls.get_nowait()
            except queue.Empty:
                break
        for _ in self._threads:
            self._calls.put(None)
        for process in self._processes:
            process.kill()
        for thread in self._threads:
            thread.join()

    def _serve(self) -> None:
        item = self._calls.get()
        if item is None:
            return
        # The process starts with the first call, so an idle pool takes no memory.
        try:
            process = subprocess.Popen(
                [sys.executable, "-c", "from explorer.collectors.workers import work; work()"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=_environment(),
            )
        except OSError as error:
            while item is not None:
                item[0].set_exception(WorkerDied(f"a worker process could not be started: {error}"))
                item = self._calls.get()
            return
        self._processes.append(process)
        assert process.stdin is not None
        assert process.stdout is not None
        with process:
            while item is not None:
                future, call = item
                item = None
                try:
                    _send(process.stdin, call)
                    good, value = pickle.loads(_receive(process.stdout))
                except Exception:
                    # Whatever it was (the end of the process, bytes that are no result, a length beyond the memory): where
                    # in its stream the next result begins is not known any more.
                    process.kill()
                    future.set_exception(
                        WorkerDied("a worker process ended unexpectedly; is there enough memory?")
                    )
                else:
                    if good:
                        future.set_result(value)
                    else:
                        future.set_exception(value)
                item = self._calls.get()
            with contextlib.suppress(OSError):
                process.stdin.close()
            process.kill()


def _environment() -> dict[str, str]:
    """The same import path, one thread per library (the processes are the parallelism), and a memory allocator that
    keeps what is freed for the next call: getting it anew from the system costs more than a tenth of the time."""
    path = os.pathsep.join(p or os.getcwd() for p in sys.path)
    return {
        **os.environ,
        "PYTHONPATH": path,
        "OMP_NUM_THREADS": "1",
        "ARROW_DEFAULT_MEMORY_POOL": "system",
        "MALLOC_ARENA_MAX": "2",
        "MALLOC_MMAP_THRESHOLD_": str(1 << 30),
        "MALLOC_TRIM_THRESHOLD_": str(1 << 31),
    }


def _resident_bytes() -> int:
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def _send(stream: IO[bytes], data: bytes) -> None:
    stream.write(_LENGTH.pack(len(data)))
    stream.write(data)
    stream.flush()


def _receive(stream: IO[bytes]) -> bytes:
    header = stream.read(_LENGTH.size)
    if len(header) < _LENGTH.size:
        raise EOFError
    (length,) = _LENGTH.unpack(header)
    data = stream.read(length)
    if len(data) < length:
        raise EOFError
    return data


def work() -> None:
    """The loop of a worker process: calls from standard input, results to standard output."""
    import signal

    from explorer.store.arrow_alone import keep_pandas_out

    keep_pandas_out()
    import pyarrow as pa

    from explorer.collectors.release_memory import release_memory

    # Ctrl-C is for the parent, which ends the workers itself.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    pa.set_cpu_count(1)
    stream = sys.stdin.buffer
    # Whatever a library prints must not get between the results.
    results = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    while True:
        try:
            module, name, arguments = pickle.loads(_receive(stream))
        except EOFError:
            return
        try:
            answer: tuple[bool, Any] = (True, getattr(importlib.import_module(module), name)(*arguments))
        except BaseException as error:
            answer = (False, error)
        try:
            data = pickle.dumps(answer, pickle.HIGHEST_PROTOCOL)
        except Exception as error:
            data = pickle.dumps((False, RuntimeError(f"{answer[1]!r} ({error})")))
        del answer, arguments
        try:
            _send(results, data)
        except OSError:
            return
        del data
        if _resident_bytes() > KEEP_BYTES:
            release_memory()
