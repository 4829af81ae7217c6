"""What recording may take of a thread's processor time, and what it has taken: what holds every program under 1.5 times."""

from __future__ import annotations

import time
from collections.abc import Callable

SHARE = 0.16
"""Of a thread's processor time, recording may take this much. A share s makes a program run 1 / (1 - s) times as long: 1.19
times here. The rest up to 1.5 is for the roughness of the costs below, and for what other threads of the recorder take."""

OTHERS_SHARE = 0.12
"""The same for threads other than the one that started recording: starting them costs as well."""

WAITING_SHARE = 0.02
"""And this much of the time on the clock: a program that mostly waits has little processor time to take a share of, and
hardly notices. Small, as a program on a busy machine waits as well."""

CREDIT_NS = 10_000_000
"""What recording may take before the program has run for long, and at most what it can save up."""

DEBT_NS = 2_000_000
"""Recording is not taken up again where it owes more than this."""

CALL_NS = 700
"""Rough cost of one traced call: the tracer's own, and that of the interpreter's slow way through the code that is called."""

RECORD_NS = 600
"""Rough cost of one record, with that of the interpreter's slow way through its line, and of reading it at the window's end."""

SLOW_SHARE = 0.85
"""Of the processor time that library code takes while it is traced, the tracing is about this much: code that is not looked
at takes two to four times as long."""

REST_NS = 25_000
"""Rough cost of one rest, from switching off to being taken up."""

SLOW_CALL_NS = 6_000
"""At most so much of it is charged for one call: longer ones spend their time in compiled code, which tracing spares."""

LATER_NS = 20_000_000
"""At most so much time in a library is left to be judged later."""

TICK_NS = 60_000_000
"""At most so much time is judged by where a thread is found at one moment."""


class Credit:
    """What recording may still take. The thread that started it has one, all others share one: each of many short threads
    would else begin with a credit of its own."""

    __slots__ = ("credit_ns", "is_owners")

    def __init__(self, *, is_owners: bool = True) -> None:
        self.credit_ns = float(CREDIT_NS)
        self.is_owners = is_owners

    @property
    def in_debt(self) -> bool:
        """Whether recording has to rest, as of the last time that a thread took account."""
        return self.credit_ns < -DEBT_NS


class Budget:
    """Of one thread, which alone may ask, or of all together. Costs are counted, not measured: what is measured is the time they are part of."""

    __slots__ = ("_clock_ns", "_credit", "_library_ns", "_processor_ns", "call_ns", "record_ns", "seen_ns")

    def __init__(
        self,
        credit: Credit,
        call_ns: float,
        record_ns: float,
        processor_ns: Callable[[], int] | None = None,
    ) -> None:
        """`processor_ns`: the processor time it is about; None: that of the thread."""
        self.call_ns = call_ns
        self.record_ns = record_ns
        self._processor_ns = processor_ns or time.thread_time_ns
        self.seen_ns = self._processor_ns()
        """Processor time at the last `charge`"""
        self._library_ns: float = self.seen_ns
        """The same when it was last judged how much of the time is a library's"""
        self._credit = credit
        self._clock_ns = time.monotonic_ns()

    def charge(self, calls: int = 0, records: int = 0, most_slow_ns: float = 0.0) -> bool:
        """Take account of what was traced since the last time; False where recording has taken more than it may.

        `most_slow_ns`: where the thread is in a library that runs Python, up to so much of the time since the last call that
        gave any `calls` or this is taken for that library's, if that is more than its calls account for."""
        now_ns = self._processor_ns()
        elapsed_ns = now_ns - self.seen_ns
        self.seen_ns = now_ns
        records_ns = records * self.record_ns
        library_ns = 0.0
        if calls or most_slow_ns:
            unexplained_ns = max(0.0, now_ns - self._library_ns - records_ns)
            library_ns = max(calls * self.call_ns, min(SLOW_SHARE * unexplained_ns, most_slow_ns))
            # What is more than it may be charged is either compiled code's or that of a loop without calls: whoever looks
            # next from within a library may find out.
            later_ns = max(0.0, unexplained_ns - library_ns / SLOW_SHARE) if most_slow_ns else 0.0
            self._library_ns = now_ns - min(later_ns, LATER_NS)
        else:
            self._library_ns += records_ns
        credit = self._credit
        share = SHARE if credit.is_owners else OTHERS_SHARE
        clock_ns = time.monotonic_ns()
        earned_ns = share * elapsed_ns + WAITING_SHARE * (clock_ns - self._clock_ns)
        self._clock_ns = clock_ns
        left_ns = min(CREDIT_NS, credit.credit_ns + earned_ns)
        credit.credit_ns = left_ns - library_ns - records_ns
        return credit.credit_ns >= 0

    def rested(self) -> None:
        """Take account of a rest that has ended, or goes on: nothing was traced since the last time."""
        self.charge()
        self._library_ns = self.seen_ns

    def rests(self) -> None:
        """A rest begins."""
        self._credit.credit_ns -= REST_NS

    @property
    def credit_ns(self) -> float:
        """What is left; negative where recording has taken too much."""
        return self._credit.credit_ns

    @property
    def in_debt(self) -> bool:
        """As of the credit."""
        return self._credit.in_debt
