"""A call between two bytecodes keeps its own errors to itself, and gives the program those of its signal handlers."""

from __future__ import annotations

import signal
import sys
from types import FrameType

import pytest

from explorer.collectors.capture.main_thread_call import MainThreadCall


class FromHandler(Exception):
    pass


def handler(number: int, frame: FrameType | None) -> None:
    raise FromHandler(number)


def call_and_wait(call: MainThreadCall) -> None:
    call.now()
    for _ in range(1000):
        pass


def test_an_error_of_a_signal_handler_reaches_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    lost: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", lost.append)
    before = signal.signal(signal.SIGUSR1, handler)
    call = MainThreadCall(lambda: signal.raise_signal(signal.SIGUSR1))
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
    call = MainThreadCall(lambda: signal.raise_signal(signal.SIGINT))
    try:
        with pytest.raises(KeyboardInterrupt):
            call_and_wait(call)
    finally:
        call.stop()
        signal.signal(signal.SIGINT, before)


def test_its_own_errors_stay_inside() -> None:
    calls: list[int] = []
    call = MainThreadCall([].pop)
    more = MainThreadCall(lambda: calls.append(1))
    call_and_wait(call)
    call_and_wait(more)
    assert calls == [1]
