"""However a program ends, what was recorded is saved first, and the end is the program's own."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

PROGRAM = """
import os, signal, time
from explorer.collectors.capture.termination import Termination
def save():
    if {again}: os.kill(os.getpid(), {number})
    time.sleep(0.01)
    termination.stop()
    print("saved", flush=True)
termination = Termination(save)
termination.start()
{end}
"""


def run(end: str, *, again: bool = False, number: int = signal.SIGTERM) -> tuple[int, str]:
    text = PROGRAM.format(end=end, again=again, number=int(number))
    done = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stderr == ""
    return done.returncode, done.stdout


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_sent_twice_lets_the_first_save(number: signal.Signals) -> None:
    assert run(f"os.kill(os.getpid(), {int(number)})", again=True, number=number) == (-number, "saved\n")


def test_an_exit_that_skips_all_cleaning_up_is_saved() -> None:
    assert run("os._exit(5)") == (5, "saved\n")


def test_a_forked_child_leaves_at_once() -> None:
    end = """
child = os.fork()
if child == 0:
    termination.forget()
    os._exit(3)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
os._exit(4)
"""
    assert run(end) == (4, "3\nsaved\n")


def test_a_handler_of_the_program_stays() -> None:
    end = "termination.stop()\nsignal.signal(15, lambda *_: print('own', flush=True))\ntermination.start()\nos.kill(os.getpid(), 15)"
    assert run(end) == (0, "own\n")
