"""Worker processes that end, or write what is no result, fail their call and nothing more."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from explorer.collectors.workers import WorkerDied, Workers

SECONDS = 60


def write_garbage() -> None:
    """Every pipe of the process gets bytes that announce a result of 2^64 - 1 bytes."""
    for name in os.listdir("/proc/self/fd"):
        try:
            if "pipe" in os.readlink(f"/proc/self/fd/{name}") and int(name) > 2:
                os.write(int(name), b"\xff" * 64)
        except OSError:
            continue


def test_calls_of_a_worker_that_ended_fail() -> None:
    workers = Workers(1)
    try:
        with pytest.raises(WorkerDied):
            workers.submit(os._exit, 3).result(SECONDS)
        with pytest.raises(WorkerDied):
            workers.submit(os.getpid).result(SECONDS)
    finally:
        workers.close()


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs /proc")
def test_garbage_instead_of_a_result_fails_the_call() -> None:
    workers = Workers(1)
    try:
        assert workers.submit(os.getpid).result(SECONDS) != os.getpid()
        with pytest.raises(WorkerDied):
            workers.submit(write_garbage).result(SECONDS)
    finally:
        workers.close()


def test_a_worker_that_cannot_start_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: Any, **more: Any) -> None:
        raise OSError("no more processes")

    monkeypatch.setattr(subprocess, "Popen", refuse)
    workers = Workers(1)
    try:
        for _ in range(2):
            with pytest.raises(WorkerDied, match="no more processes"):
                workers.submit(os.getpid).result(SECONDS)
    finally:
        workers.close()
