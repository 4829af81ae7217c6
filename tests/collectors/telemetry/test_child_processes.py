"""Processor time of the processes a program started."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from explorer.collectors.telemetry.child_processes import children_seconds

TICKS = os.sysconf("SC_CLK_TCK")


def process(
    proc: Path, pid: int, seconds: tuple[int, int, int, int], children: str, threads: str = ""
) -> None:
    for thread, below in ((pid, children), (pid + 1, threads)):
        folder = proc / str(pid) / "task" / str(thread)
        folder.mkdir(parents=True)
        (folder / "children").write_text(below)
    times = " ".join(str(TICKS * value) for value in seconds)
    (proc / str(pid) / "stat").write_text(f"{pid} (python (x) y) S 1 2 3 4 5 6 7 8 9 10 {times} 20 0")


def test_all_below_count_once_and_the_process_itself_does_not(tmp_path: Path) -> None:
    # It waited for a process of 3 s; of two that run, started by two of its threads, one has started another.
    process(tmp_path, 10, (100, 50, 2, 1), "20 ", "30 99 ")
    process(tmp_path, 20, (4, 1, 0, 0), "40 10")
    process(tmp_path, 30, (7, 0, 0, 5), "")
    process(tmp_path, 40, (1, 1, 0, 0), "")
    assert children_seconds(10, tmp_path) == 3 + 5 + 12 + 2


def test_a_system_that_does_not_say_is_not_guessed(tmp_path: Path) -> None:
    assert children_seconds(10, tmp_path) is None


@pytest.mark.skipif(
    children_seconds(os.getpid()) is None, reason="this system does not list the children of a process"
)
def test_a_child_that_works_counts_while_it_runs_and_after() -> None:
    before = children_seconds(os.getpid()) or 0.0
    code = "import time\nwhile time.process_time() < 0.3: pass\nprint(flush=True)\ninput()"
    child = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdout is not None
    child.stdout.readline()
    assert (children_seconds(os.getpid()) or 0.0) - before >= 0.25
    child.communicate(b"\n")
    assert (children_seconds(os.getpid()) or 0.0) - before >= 0.25
