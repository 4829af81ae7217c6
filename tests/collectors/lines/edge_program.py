"""Control flow that line recorders get wrong: every `probe()` asks where Python is, and must agree with the record."""

# ruff: noqa
# fmt: off
import asyncio
import contextlib
import functools
import threading

from outside import call, make_generator, probe, with_callback


def recursive(depth):
    probe()
    if depth:
        recursive(depth - 1); probe()
    probe()


def counting(count):
    try:
        for number in range(count):
            probe()
            got = yield number
            probe()
            if got:
                probe()
    finally:
        probe()


def delegating():
    probe()
    result = yield from counting(3)
    probe()
    return result


@contextlib.contextmanager
def managed():
    probe()
    try:
        yield 1
    finally:
        probe()


def raising(depth):
    probe()
    if depth:
        raising(depth - 1)
    else:
        raise ValueError


class Special(with_callback):
    probe()

    @property
    def value(self):
        probe()
        return 1

    def callback(self):
        probe()
        return 2

    def __enter__(self):
        probe()
        return self

    def __exit__(self, *error):
        probe()
        return True

    def __add__(self, other):
        probe()
        return 3

    def __del__(self):
        probe()


async def coroutine(depth):
    probe()
    await asyncio.sleep(0)
    probe()
    if depth:
        await asyncio.gather(coroutine(depth - 1), coroutine(depth - 1))
        probe()
    async with async_managed():
        probe()
    async for _ in async_numbers():
        probe()


@contextlib.asynccontextmanager
async def async_managed():
    probe()
    yield
    probe()


async def async_numbers():
    for number in range(2):
        probe()
        yield number
        probe()


def keywords(a=1, *rest, **named):
    probe()
    return a


def generators():
    for _ in counting(2):
        probe()
    closed = counting(5)
    next(closed); probe()
    closed.close(); probe()
    thrown = counting(5)
    next(thrown); probe()
    try:
        thrown.throw(KeyError)
    except KeyError:
        probe()
    sent = counting(2)
    next(sent)
    sent.send(True); probe()
    dropped = counting(5)
    next(dropped)
    del dropped; probe()
    for _ in delegating():
        probe()


def errors():
    with managed():
        probe()
    try:
        with managed():
            raise IndexError
    except IndexError:
        probe()
    try:
        raising(3)
    except ValueError:
        probe()
    finally:
        probe()
    with contextlib.suppress(ValueError):
        raising(1)
    probe()


def calls():
    special = Special()
    special.value; probe()
    special.run_callback(); probe()
    with special:
        raise RuntimeError
    probe()
    special + special; probe()
    del special; probe()
    [probe() for _ in range(2)]; probe()
    {number: probe() for number in (recursive(1) for _ in range(2))}; probe()
    sorted([3, 1], key=lambda value: probe() or value); probe()
    (
        keywords(
            keywords(1),
            *[keywords(2), keywords(3)],
            k=keywords(4),
        ),
        probe(),
        probe(),
    )
    functools.partial(keywords, 3)(); probe()
    call(lambda: probe()); probe()
    for _ in make_generator():
        probe()


def made_code():
    exec("from outside import probe\nprobe()\nfor i in range(2):\n  probe()\n"); probe()
    scope = {"probe": probe}
    exec(compile("def made(n):\n  probe()\n  if n: made(n-1)\n  probe()\n", "<generated>", "exec"), scope)
    scope["made"](2); probe()


def statements():
    number = 0

    def inner():
        nonlocal number
        probe()
        number = 1; probe()

    inner(); probe()
    while number < 3:
        number += 1; probe()
    assert (lambda: (probe(), 1)[1])(); probe()
    match number:
        case 3 if probe() is None:
            probe()
    (probe(), probe(), 1 + (probe() or 1))
    return probe()


def threads():
    started = [threading.Thread(target=recursive, args=(3,)) for _ in range(3)]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()
    probe()


def main():
    probe()
    recursive(2)
    generators()
    errors()
    calls()
    made_code()
    statements()
    asyncio.run(coroutine(2)); probe()
    threads(); probe()
