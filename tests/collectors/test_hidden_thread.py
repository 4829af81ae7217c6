"""A thread that is on no list of the program's threads."""

from __future__ import annotations

import sys
import threading

import pytest

from explorer.collectors.hidden_thread import HiddenThread


def test_it_is_not_counted_while_it_runs_and_join_waits_for_its_end() -> None:
    go = threading.Event()
    seen: list[int] = []
    before = threading.enumerate()

    def work() -> None:
        go.wait(10)
        seen.append(threading.get_ident())

    thread = HiddenThread(work)
    assert threading.enumerate() == before
    assert not thread.join(timeout_seconds=0)
    go.set()
    assert thread.join(timeout_seconds=10)
    assert len(seen) == 1
    assert seen[0] != threading.get_ident()
    assert threading.enumerate() == before


def test_its_errors_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", said.append)
    assert HiddenThread([].pop).join(timeout_seconds=10)
    assert said == []


def test_the_programs_trace_and_profile_functions_do_not_reach_it() -> None:
    traced: list[str] = []

    def note(frame: object, event: str, argument: object) -> None:
        traced.append(event)

    before = threading.gettrace(), threading.getprofile()
    threading.settrace(note)
    threading.setprofile(note)
    try:
        assert HiddenThread(lambda: sorted([2, 1])).join(timeout_seconds=10)
    finally:
        threading.settrace(before[0])  # type: ignore[arg-type]
        threading.setprofile(before[1])
    assert traced == []
