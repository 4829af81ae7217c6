"""Inside a DataLoader's worker process: which line it executes, and which batch it fetches when.

A worker writes small files into a folder that the training process made, merges and removes; it never touches the run.
Where that folder is gone, recording is over. No profiler runs here: a worker's time is Python, reading and decoding.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

from explorer.collectors.capture.main_thread_call import MainThreadCall

FLUSH_NS = 20_000_000
FLUSH_SHARE = 0.02
"""A worker hands over what it recorded between two batches, at most this often and for at most this share of its time."""

WINDOW_NS = 200_000_000
"""How long the line budget of one function lasts."""

TAKE_UP_SECONDS = 0.05
"""How long line recording stays off after a hot loop switched it off, unless another batch begins before."""

STATE_LIMIT = 500_000
"""Line states of one worker; then it goes on with its batches alone."""


class WorkerInit:
    """Stands in for a loader's worker_init_fn: starts recording, then calls the program's own. Picklable whenever the
    program's own function is, for workers that are spawned."""

    def __init__(
        self,
        original: Callable[[int], Any] | None,
        folder: str,
        loader: int,
        iterator: int,
        user_code: tuple[str, ...],
        library_code: tuple[str, ...],
    ) -> None:
        self.original = original
        self.folder = folder
        self.loader = loader
        self.iterator = iterator
        self.user_code = user_code
        self.library_code = library_code

    def __call__(self, worker_id: int) -> Any:
        with contextlib.suppress(Exception):
            WorkerRecording(self, worker_id).start()
        return self.original(worker_id) if self.original is not None else None


class WorkerRecording:
    """Records the worker's main thread from worker_init_fn to its end."""

    def __init__(self, init: WorkerInit, worker_id: int) -> None:
        from explorer.collectors.lines.replay import Replay
        from explorer.collectors.lines.user_code import UserCode

        self._init = init
        self._worker = worker_id
        self._replay = Replay()
        self._user_code = UserCode(init.user_code, init.library_code)
        self._recorder: Any = None
        self._carried: dict[int, int] = {}
        self._fetches: list[tuple[int, int, int]] = []
        self._since = self._window = self._flushed = time.time_ns()
        self._flush_cost_ns = 0
        self._nodes = 1
        self._states = 0
        self._pieces = 0
        self._over = False
        self._take_up_soon = MainThreadCall(self._take_up)

    def start(self) -> None:
        from multiprocessing.util import Finalize

        from explorer.collectors.capture import guard

        session = guard.active()
        if session is not None:
            # A spawned worker of a program under `record` began a capture of its own.
            session.abandon()
        self._watch_fetches()
        if sys.gettrace() is None or hasattr(sys, "monitoring"):
            self._recorder = self._make_recorder()
            loop = sys._getframe(2)
            self._recorder.base_code = loop.f_code
            self._recorder.on_switched_off = lambda: self._take_up_soon.after(TAKE_UP_SECONDS)
            self._recorder.start(None)
        Finalize(None, self._flush, exitpriority=100)

    def _make_recorder(self) -> Any:
        if hasattr(sys, "monitoring"):
            from explorer.collectors.lines.monitoring_recorder import MonitoringRecorder

            return MonitoringRecorder(self._user_code)
        from explorer.collectors.lines.settrace_recorder import SettraceRecorder

        return SettraceRecorder(self._user_code)

    def _take_up(self, frame: FrameType) -> None:
        if self._recorder is not None and not self._recorder.take_up(frame):
            self._take_up_soon.after(TAKE_UP_SECONDS)

    def _watch_fetches(self) -> None:
        from torch.utils.data._utils import fetch as module

        for name in ("_MapDatasetFetcher", "_IterableDatasetFetcher"):
            owner = getattr(module, name, None)
            if owner is not None:
                owner.fetch = self._timed(owner.fetch)

    def _timed(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def fetch(fetcher: Any, index: Any) -> Any:
            # The worker's loop knows the number of the batch, the fetcher does not.
            batch = sys._getframe(1).f_locals.get("idx", -1)
            if self._recorder is not None:
                self._recorder.take_up(None, at_step=True)
            begin = time.time_ns()
            try:
                return original(fetcher, index)
            finally:
                now = time.time_ns()
                if not self._over:
                    self._fetches.append((int(batch), begin, now))
                    wait = min(max(FLUSH_NS, self._flush_cost_ns / FLUSH_SHARE), WINDOW_NS)
                    if self._pieces == 0 or now - self._flushed > wait:
                        self._flush()

        return fetch

    def _flush(self) -> None:
        """Hand over everything since the last time; nothing in here may reach the program."""
        if self._over:
            return
        try:
            begin = time.thread_time_ns()
            pinned = self._recorder.pin(sys._getframe()) if self._recorder is not None else None
            self._write(self._piece())
            if self._recorder is not None and self._states > STATE_LIMIT:
                self._recorder.stop()
                self._recorder = None
            self._flushed = time.time_ns()
            self._flush_cost_ns = time.thread_time_ns() - begin
            if self._recorder is not None and self._flushed - self._window > WINDOW_NS:
                self._window = self._flushed
                self._recorder.resume(None)
            elif pinned is not None and self._recorder is not None:
                self._recorder.unpin(sys._getframe(), pinned)
        except Exception:
            # The capture is over (its folder is gone), or cannot be served.
            self._over = True
            with contextlib.suppress(Exception):
                if self._recorder is not None:
                    self._recorder.stop()
            self._recorder = None

    def _piece(self) -> dict[str, Any]:
        from explorer.collectors.capture.host_states import HostStates

        end = time.time_ns()
        own = threading.main_thread().native_id
        records = self._recorder.take() if self._recorder is not None else []
        states = HostStates(
            self._replay.states([r for r in records if r.native_id == own]), self._carried, self._since, end
        )
        times, nodes = states.by_thread.get(own or 0, (None, None))
        chains = self._replay.chains
        fresh = []
        for node in range(self._nodes, len(chains.parents)):
            code = chains.codes[node]
            assert code is not None
            last = None
            if chains.coarse[node]:
                last = max((at for _, _, at in code.co_lines() if at), default=chains.lines[node])
            fresh.append((chains.parents[node], code.co_filename, chains.lines[node], code.co_qualname, last))
        self._nodes = len(chains.parents)
        self._states += len(times) if times is not None else 0
        fetches, self._fetches = self._fetches, []
        self._since = end
        return {
            "loader": self._init.loader,
            "iterator": self._init.iterator,
            "worker": self._worker,
            "process_id": os.getpid(),
            "native_id": own,
            "end_ns": end,
            "times": times.tobytes() if times is not None else b"",
            "nodes": nodes.tobytes() if nodes is not None else b"",
            "fresh": fresh,
            "fetches": fetches,
            "full": self._states > STATE_LIMIT,
            "hot": [code.co_qualname for code in self._recorder.hot] if self._recorder is not None else [],
        }

    def _write(self, piece: dict[str, Any]) -> None:
        import msgspec

        name = f"{self._init.iterator:06d}-{self._worker:04d}-{self._pieces:06d}"
        self._pieces += 1
        path = os.path.join(self._init.folder, name)
        with open(path + ".part", "wb") as file:
            file.write(msgspec.msgpack.encode(piece))
        os.replace(path + ".part", path + ".piece")
