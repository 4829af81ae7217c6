"""Recording rests where it costs too much, and goes on at the end of the frame it rests for."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import pytest

from explorer.collectors.capture import main_thread_call
from explorer.collectors.capture.main_thread_call import MainThreadCall
from explorer.collectors.lines import budget
from explorer.collectors.lines.budget import CREDIT_NS, DEBT_NS, REST_NS, Budget, Credit
from explorer.collectors.lines.frame_end import FrameEnd, can_be_watched, forget_end
from explorer.collectors.lines.records import CLEAR, COARSE, LIKELY, POP, ThreadRecords
from explorer.collectors.lines.replay import Replay
from explorer.collectors.lines.settrace_recorder import SettraceRecorder
from explorer.collectors.lines.user_code import UserCode

# -- the budget


@pytest.fixture
def processor(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Processor time of the thread, in a list of one."""
    now = [0]
    monkeypatch.setattr(budget.time, "thread_time_ns", lambda: now[0])
    monkeypatch.setattr(budget, "WAITING_SHARE", 0)
    return now


def test_recording_may_take_its_share_of_the_time_and_its_first_credit(processor: list[int]) -> None:
    own = Budget(Credit(), call_ns=500, record_ns=250)
    assert own.credit_ns == CREDIT_NS
    assert own.charge(calls=10_000, records=10_000)
    assert own.credit_ns == CREDIT_NS - 7_500_000
    processor[0] = 4_000_000
    assert not own.charge(calls=8_000)
    assert own.credit_ns == CREDIT_NS - 7_500_000 + 640_000 - 4_000_000
    assert not own.in_debt
    assert not own.charge(records=8_000)
    assert own.credit_ns == -860_000 - 2_000_000
    assert own.in_debt
    processor[0] += (2_860_000 - DEBT_NS) * 100 // 16 + 10
    own.charge()
    assert not own.in_debt


def test_no_more_is_saved_up_than_the_first_credit(processor: list[int]) -> None:
    own = Budget(Credit(), call_ns=500, record_ns=250)
    processor[0] = 10**12
    own.charge()
    assert own.credit_ns == CREDIT_NS


def test_time_in_a_library_is_charged_where_its_calls_account_for_less(processor: list[int]) -> None:
    own = Budget(Credit(), call_ns=500, record_ns=250)
    processor[0] = 10_000_000
    own.charge(calls=2, most_slow_ns=25_000_000)
    assert own.credit_ns == CREDIT_NS - 8_500_000
    processor[0] = 20_000_000
    own.charge(calls=2, most_slow_ns=3_000_000)
    assert own.credit_ns == CREDIT_NS - 8_500_000 + 1_600_000 - 3_000_000


def test_time_that_calls_do_not_explain_is_judged_by_who_looks_next(processor: list[int]) -> None:
    own = Budget(Credit(), call_ns=500, record_ns=250)
    processor[0] = 10_000_000
    own.charge(calls=2, most_slow_ns=1_700_000)
    assert own.credit_ns == CREDIT_NS - 1_700_000
    # 8 ms are left: a loop of the library is seen to run.
    own.charge(most_slow_ns=60_000_000)
    assert own.credit_ns == CREDIT_NS - 1_700_000 - 6_800_000


def test_the_time_of_a_rest_is_no_librarys(processor: list[int]) -> None:
    own = Budget(Credit(), call_ns=500, record_ns=250)
    own.rests()
    assert own.credit_ns == CREDIT_NS - REST_NS
    processor[0] = 10_000_000
    own.rested()
    own.charge(calls=4, most_slow_ns=25_000_000)
    assert own.credit_ns == CREDIT_NS - 2_000


def test_records_in_between_are_not_charged_as_a_librarys_time(processor: list[int]) -> None:
    own = Budget(Credit(), call_ns=500, record_ns=250)
    processor[0] = 1_000_000
    own.charge(records=2_000)
    processor[0] = 2_000_000
    own.charge(calls=10, records=4_000, most_slow_ns=25_000_000)
    assert own.credit_ns == CREDIT_NS - 500_000 + 160_000 - 1_000_000 - 425_000


def test_other_threads_share_one_smaller_credit(processor: list[int]) -> None:
    credit = Credit(is_owners=False)
    first, second = (Budget(credit, 500, 250) for _ in range(2))
    first.charge(records=40_000)
    assert second.credit_ns == CREDIT_NS - 10_000_000
    processor[0] = 10_000_000
    second.charge()
    assert first.credit_ns == CREDIT_NS - 10_000_000 + 1_200_000


# -- the end of a frame


def watched(seen: list[str], fail: bool = False) -> None:
    frame = sys._getframe()
    frame.f_trace = FrameEnd(lambda end: seen.append("end"), frame.f_back)
    del frame
    seen.append("body")
    if fail:
        raise ValueError


def test_the_end_of_a_frame_is_told_at_once() -> None:
    seen: list[str] = []
    watched(seen)
    seen.append("after")
    assert seen == ["body", "end", "after"]


def test_a_frame_that_a_traceback_keeps_ends_with_it() -> None:
    seen: list[str] = []
    try:
        watched(seen, fail=True)
    except ValueError:
        seen.append("handled")
    seen.append("after")
    assert seen == ["body", "handled", "end", "after"]


def test_a_watch_that_was_taken_away_tells_nothing() -> None:
    seen: list[str] = []

    def program() -> None:
        frame = sys._getframe()
        frame.f_trace = FrameEnd(lambda end: seen.append("end"), None)
        forget_end(frame)

    program()
    assert seen == []


def test_generators_are_not_watched() -> None:
    def generator() -> Iterator[FrameType]:
        yield sys._getframe()

    assert not can_be_watched(next(generator()))
    assert can_be_watched(sys._getframe())


# -- what the replay makes of it


def test_the_line_of_a_rest_in_a_library_is_likely() -> None:
    code = test_generators_are_not_watched.__code__
    replay = Replay()
    payloads: list[Any] = [code, 7, LIKELY - 7, 7, COARSE, POP, CLEAR]
    own = ThreadRecords(1, 1, "main", [part for payload in payloads for part in (0, payload)])
    nodes = replay.nodes(own)
    chains = replay.chains
    assert [(chains.lines[node], chains.guess[node], chains.coarse[node]) for node in nodes] == [
        (code.co_firstlineno, False, False),
        (7, False, False),
        (7, True, False),
        (7, False, False),
        (code.co_firstlineno, False, True),
        (0, False, False),
        (0, False, False),
    ]


# -- the recorder


def hot(times: int) -> int:
    total = 0
    for number in range(times):
        total += number
    return total


def quiet() -> int:
    return 1


def program() -> None:
    hot(1_000)
    quiet()


def looping(passes: int) -> None:
    for _ in range(passes):
        hot(2_000)
    quiet()


def recorded(
    work: Callable[[], None], line_budget: int
) -> tuple[SettraceRecorder, list[tuple[str, int, bool]]]:
    """The recorder, and its states without repetition: innermost function, line after its `def`, coarse."""
    recorder = SettraceRecorder(UserCode(include=[os.path.abspath(__file__)]), line_budget)
    before = sys.gettrace()
    recorder.start(None)
    try:
        work()
    finally:
        recorder.stop()
        sys.settrace(before)
    replay = Replay()
    (own,) = (thread for thread in recorder.take() if thread.ident == threading.get_ident())
    states = []
    for node in replay.nodes(own):
        code = replay.chains.codes[node]
        if code is not None:
            state = (
                code.co_name,
                replay.chains.lines[node] - code.co_firstlineno,
                replay.chains.coarse[node],
            )
            if not states or states[-1] != state:
                states.append(state)
    return recorder, states


needs_settrace = pytest.mark.skipif(sys.version_info >= (3, 12), reason="sys.monitoring records here")


@needs_settrace
def test_the_caller_of_hot_code_is_exact_when_that_returns() -> None:
    recorder, states = recorded(program, line_budget=100)
    assert recorder.switched_off == 1
    assert set(recorder.hot) == {hot.__code__}
    rest = states.index(("hot", 0, True))
    assert states[rest - 1][0] == "hot"
    assert states[rest + 1 : rest + 5] == [
        ("program", 1, False),
        ("program", 2, False),
        ("quiet", 0, False),
        ("quiet", 1, False),
    ]


@needs_settrace
def test_code_without_a_file_is_classified_once() -> None:
    class Counting(UserCode):
        asked = 0

        def kind_of_frame(self, frame: FrameType) -> int:
            Counting.asked += frame.f_code.co_filename == "<made>"
            return super().kind_of_frame(frame)

    scope: dict[str, Any] = {"__name__": "__main__"}
    exec(compile("def made():\n    return 1\n", "<made>", "exec"), scope)
    recorder = SettraceRecorder(Counting())
    before = sys.gettrace()
    recorder.start(None)
    try:
        for _ in range(10):
            scope["made"]()
    finally:
        recorder.stop()
        sys.settrace(before)
    assert Counting.asked == 1
    own = next(thread for thread in recorder.take() if thread.ident == threading.get_ident())
    assert own.records[1::2].count(scope["made"].__code__) == 10


@needs_settrace
def test_a_rest_that_is_too_short_is_one_of_the_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    from explorer.collectors.lines import settrace_rest

    monkeypatch.setattr(settrace_rest, "WORTH_NS", 10**12)
    recorder, states = recorded(lambda: looping(50), line_budget=100)
    # Twice it was hot() alone, then it was the loop that calls it.
    assert recorder.switched_off == 3
    assert states.count(("hot", 0, True)) == 2
    assert ("looping", 0, True) in states


@needs_settrace
def test_recording_in_debt_stays_off_until_time_has_paid(monkeypatch: pytest.MonkeyPatch) -> None:
    from explorer.collectors.lines import settrace_rest

    now = [0]
    monkeypatch.setattr(budget.time, "thread_time_ns", lambda: now[0])
    monkeypatch.setattr(budget, "WAITING_SHARE", 0)
    monkeypatch.setattr(settrace_rest, "WORTH_NS", 0)
    recorder = SettraceRecorder(UserCode(include=[os.path.abspath(__file__)]), 10**9)
    before = sys.gettrace()
    recorder.start(None)
    try:
        # No time passes: the first credit is spent by 60,000 records, and more than the debt that is allowed.
        for _ in range(60):
            hot(500)
        taken = [recorder.take_up(sys._getframe())]
        now[0] = 10**9
        taken.append(recorder.take_up(sys._getframe()))
    finally:
        recorder.stop()
        sys.settrace(before)
    assert recorder.switched_off
    assert taken == [False, True]


def test_a_call_is_arranged_once_though_the_main_thread_comes_in_between(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = []

    class Thread:
        def __init__(self, target: Callable[[], object]) -> None:
            made.append(target)
            # A pending call of the interpreter comes here, and asks for the next one.
            call.after(2.0)

    monkeypatch.setattr(main_thread_call, "HiddenThread", Thread)
    call = MainThreadCall(lambda frame: None)
    call.after(1.0)
    call.stop()
    assert len(made) == 1
