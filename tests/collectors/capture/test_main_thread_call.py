"""A call between two bytecodes keeps its own errors to itself, and gives the program those of its signal handlers."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from types import FrameType

import pytest

from explorer.collectors.capture.main_thread_call import MainThreadCall
from explorer.collectors.lines.frame_end import FrameEnd


class FromHandler(Exception):
    pass


def handler(number: int, frame: FrameType | None) -> None:
    raise FromHandler(number)


def work_and_wait(work: Callable[[], None]) -> None:
    work()
    until = time.monotonic() + 30
    while time.monotonic() < until:
        pass


def call_and_wait(call: MainThreadCall) -> None:
    call.now()
    for _ in range(1000):
        pass


def test_an_error_of_a_signal_handler_reaches_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    lost: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", lost.append)
    before = signal.signal(signal.SIGUSR1, handler)
    call = MainThreadCall(lambda frame: signal.raise_signal(signal.SIGUSR1))
    try:
        with pytest.raises(FromHandler) as caught:
            call_and_wait(call)
    finally:
        call.stop()
        signal.signal(signal.SIGUSR1, before)
    assert caught.value.args == (signal.SIGUSR1,)
    assert lost == []


def test_an_interrupt_reaches_the_program() -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    call = MainThreadCall(lambda frame: signal.raise_signal(signal.SIGINT))
    try:
        with pytest.raises(KeyboardInterrupt):
            call_and_wait(call)
    finally:
        call.stop()
        signal.signal(signal.SIGINT, before)


def test_an_error_of_a_signal_handler_at_the_end_of_a_frame_reaches_the_program(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lost: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", lost.append)
    before = signal.signal(signal.SIGUSR1, handler)

    def watched() -> None:
        sys._getframe().f_trace = FrameEnd(lambda end: signal.raise_signal(signal.SIGUSR1), None)

    try:
        with pytest.raises(FromHandler) as caught:
            work_and_wait(watched)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert caught.value.args == (signal.SIGUSR1,)
    assert lost == []


def test_its_own_errors_stay_inside() -> None:
    calls: list[int] = []
    call = MainThreadCall([].pop)
    more = MainThreadCall(lambda frame: calls.append(1))
    call_and_wait(call)
    call_and_wait(more)
    assert calls == [1]


BESIDE = """
import sys, threading, time
from explorer.collectors.capture.main_thread_call import MainThreadCall

done = []

def entered():
    done.append("entered")

def first(frame):
    # Another thread asks for a call while this one runs; then a function is entered under a tracer.
    thread = threading.Thread(target=second.now)
    thread.start()
    time.sleep(0.2)
    entered()
    done.append("first")

second = MainThreadCall(lambda frame: done.append("second"))

def program():
    call = MainThreadCall(first)
    threading.Thread(target=call.now).start()
    while len(done) < 3:
        pass

sys.settrace(lambda frame, event, argument: None)
program()
sys.settrace(None)
print(done)
"""


def test_a_call_asked_for_while_another_runs_under_a_tracer_waits_its_turn() -> None:
    """CPython 3.11 would never come out of `entered` with a second pending call there."""
    done = subprocess.run(
        [sys.executable, "-c", BESIDE], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout.strip() == "['entered', 'first', 'second']", done.stderr
