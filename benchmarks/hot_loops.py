"""What recording costs programs that run pure Python: processor time with recording over the same without, by shape of loop.

python benchmarks/hot_loops.py [--seconds 1] [--rounds 3] [--shape NAME ...] [--json FILE]

Method: each shape runs in a process of its own, for as many rounds of its work as take `--seconds` of processor time without
recording. Runs without and with recording alternate; a number is the least time of all rounds with recording over the least
of all without, in processor time of the whole process (recorder's own threads included), so that a busy machine only ever
adds to both. `loop` is the time between the start and the end of the capture; `hand-over` is what its end took beside it,
in seconds: reading and writing the window, most of it the same for every program.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import copy
import csv
import dataclasses
import difflib
import functools
import io
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
import tokenize
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

os.environ.setdefault("KINETO_LOG_LEVEL", "6")

TEXT = "the quick brown fox jumps over the lazy dog, and 12 of 345 dogs sleep. " * 4
RECORDS = [{"id": n, "name": f"n{n}", "tags": ["a", "b", {"deep": [1, 2, n]}]} for n in range(20)]
CSV = "\n".join(",".join(str(n * m) for m in range(8)) for n in range(50))
SOURCE = "def f(a, b):\n    return [a * x + b for x in range(10) if x % 2]\n" * 10


def lines() -> int:
    total = 0
    for number in range(3000):
        if number % 3:
            total += number
        else:
            total -= 1
    return total


def one_line_loop() -> int:
    total = 0
    for number in range(5000):
        total += number * number % 7
    return total


def add(a: int, b: int) -> int:
    return a + b


def tiny_calls() -> int:
    total = 0
    for number in range(3000):
        total = add(total, number)
    return total


def fibonacci(n: int) -> int:
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


def recursion() -> int:
    return fibonacci(15)


class Tree:
    def __init__(self, depth: int) -> None:
        self.children = [Tree(depth - 1), Tree(depth - 1)] if depth else []

    def size(self) -> int:
        return 1 + sum(child.size() for child in self.children)


def call_tree() -> int:
    return Tree(7).size()


def countdown(n: int) -> Iterator[int]:
    while n:
        n -= 1
        yield n


def generators() -> int:
    return sum(a for a in countdown(2000) if a % 2)


def delegated(n: int) -> Iterator[int]:
    if n:
        yield from delegated(n - 1)
    yield n


def nested_generators() -> int:
    return sum(sum(delegated(30)) for _ in range(5))


def comprehensions() -> int:
    return len([{m: m + n for m in range(20)} for n in range(100)])


class Point:
    def __init__(self, x: float) -> None:
        self._x = x

    @property
    def x(self) -> float:
        return self._x

    @x.setter
    def x(self, value: float) -> None:
        self._x = value

    def __add__(self, other: Point) -> Point:
        return Point(self.x + other.x)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Point) and self.x == other.x

    __hash__ = None  # type: ignore[assignment]


def properties() -> float:
    point = Point(0.0)
    for number in range(700):
        point = point + Point(1.0)
        point.x = point.x + number
    return point.x


def deep_copies() -> object:
    return copy.deepcopy(RECORDS)


def json_in_python() -> str:
    return json.dumps(RECORDS, indent=1)


def json_in_c() -> object:
    return [json.loads(json.dumps(record)) for record in RECORDS]


def regex_callbacks() -> str:
    return re.sub(r"\w+", lambda match: match.group(0).upper(), TEXT)


def regex_words() -> int:
    counts: dict[str, int] = {}
    for word in re.findall(r"\w+|[^\w\s]", TEXT):
        counts[word] = counts.get(word, 0) + 1
    return len(counts)


def regex_compiled_anew() -> int:
    return sum(len(re.sub(r"(\d+)", r"<\1>", piece)) for piece in TEXT.split(","))


def tokenizer() -> int:
    return sum(1 for _ in tokenize.generate_tokens(io.StringIO(SOURCE).readline))


def sorting_by_key() -> list[int]:
    return sorted(range(1500), key=lambda n: -n % 17)


def mapped() -> int:
    return functools.reduce(lambda a, b: a + b, map(abs, (add(n, 1) for n in range(1500))))


def fractions() -> Fraction:
    return sum((Fraction(1, n) for n in range(1, 60)), Fraction(0))


def symbols() -> object:
    import sympy
    from sympy.core.cache import clear_cache

    clear_cache()
    x, y = sympy.symbols("x y")
    return sympy.expand((x + y + 1) ** 5).diff(x)


def library_loop_without_calls() -> float:
    matcher = difflib.SequenceMatcher(None, TEXT, TEXT[40:] + TEXT[:40], autojunk=False)
    return matcher.find_longest_match(0, len(TEXT), 0, len(TEXT)).size


def diff() -> int:
    return len(list(difflib.unified_diff(TEXT.split(), TEXT.upper().split()[::2])))


def parsed_csv() -> float:
    return sum(float(value) for row in csv.DictReader(io.StringIO(CSV)) for value in row.values() if value)


def exceptions() -> int:
    caught = 0
    for number in range(1500):
        try:
            if number % 2:
                raise ValueError(number)
        except ValueError:
            caught += 1
    return caught


def many_functions() -> int:
    return sum(function(25) for function in generated())


@functools.cache
def generated() -> list[Callable[[int], int]]:
    """Two thousand functions, none of which is hot by itself."""
    scope: dict[str, Any] = {"__name__": "__main__"}
    for n in range(2000):
        text = f"def f{n}(count):\n    total = {n}\n    for i in range(count):\n        total += i\n    return total\n"
        exec(compile(text, f"generated_{n}.py", "exec"), scope)
    return [scope[f"f{n}"] for n in range(2000)]


async def waiter(n: int) -> int:
    total = 0
    for _ in range(n):
        await asyncio.sleep(0)
        total += 1
    return total


async def gathered() -> int:
    return sum(await asyncio.gather(*(waiter(20) for _ in range(20))))


def coroutines() -> int:
    return asyncio.run(gathered())


def threads() -> None:
    running = [threading.Thread(target=lambda: [lines() for _ in range(10)]) for _ in range(4)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()


def threads_with_calls() -> None:
    running = [
        threading.Thread(target=lambda: [(tiny_calls(), deep_copies()) for _ in range(3)]) for _ in range(4)
    ]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()


def arrays() -> float:
    import numpy as np

    total = 0.0
    for number in range(300):
        total += float(np.clip(np.arange(20) + number, 0, 10).mean())
    return total


@dataclasses.dataclass(order=True)
class Sample:
    number: int
    weight: float = 0.0


def data_classes() -> int:
    samples = sorted(dataclasses.replace(Sample(n % 17, n / 3), weight=1.0) for n in range(300))
    return sum(sample.number for sample in samples)


def wrapped_text() -> list[str]:
    return textwrap.wrap(TEXT * 5, 40)


@contextlib.contextmanager
def opened() -> Iterator[int]:
    yield 1


def context_managers() -> int:
    total = 0
    for _ in range(400):
        with opened() as one, contextlib.suppress(ValueError):
            total += one
    return total


def text_and_ops() -> None:
    """Words in Python, a few ops on each batch: a dataset and its model in one thread."""
    import torch

    regex_words()
    batch = torch.tensor([float(len(word)) for word in TEXT.split()])
    torch.nn.functional.softmax(batch * 2 + 1, dim=0)


SHAPES: dict[str, Callable[[], object]] = {
    function.__name__: function
    for function in (
        lines,
        one_line_loop,
        tiny_calls,
        recursion,
        call_tree,
        generators,
        nested_generators,
        comprehensions,
        properties,
        deep_copies,
        json_in_python,
        json_in_c,
        regex_callbacks,
        regex_words,
        regex_compiled_anew,
        tokenizer,
        sorting_by_key,
        mapped,
        fractions,
        symbols,
        library_loop_without_calls,
        diff,
        parsed_csv,
        exceptions,
        many_functions,
        coroutines,
        threads,
        threads_with_calls,
        arrays,
        data_classes,
        wrapped_text,
        context_managers,
        text_and_ops,
    )
}


def repeat(work: Callable[[], object], times: int) -> None:
    for _ in range(times):
        work()


def in_one_call(shape: str, seconds: float, rounds: int) -> dict[str, float]:
    """Least loop times of one shape in this process, in seconds."""
    import torch

    from explorer import neuron_profile

    torch.set_num_threads(1)
    work = SHAPES[shape]
    work()
    begin, done = time.process_time(), 0
    while time.process_time() - begin < min(0.3, seconds):
        work()
        done += 1
    times = max(1, round(done * seconds / (time.process_time() - begin)))
    plain: list[float] = []
    recorded: list[float] = []
    ends: list[float] = []
    for _ in range(rounds):
        begin = time.process_time()
        repeat(work, times)
        plain.append(time.process_time() - begin)
        folder = tempfile.mkdtemp()
        try:
            with neuron_profile(folder + "/run"):
                begin = time.process_time()
                repeat(work, times)
                end = time.process_time()
            recorded.append(end - begin)
            ends.append(time.process_time() - end)
        finally:
            shutil.rmtree(folder)
    return {"plain_s": min(plain), "recorded_s": min(recorded), "hand_over_s": min(ends)}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=1.0, help="length of a run without recording")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--shape", nargs="*", choices=sorted(SHAPES), default=list(SHAPES))
    parser.add_argument("--json", help="write the numbers to this file too")
    parser.add_argument("--here", action="store_true", help="one shape in this process, as JSON")
    options = parser.parse_args()
    if options.here:
        print(json.dumps(in_one_call(options.shape[0], options.seconds, options.rounds)))
        return
    print(f"Python {platform.python_version()}, {os.cpu_count()} CPUs, runs of {options.seconds:g} s\n")
    print("| shape | loop | hand-over |\n|---|---|---|")
    results = {}
    for shape in options.shape:
        command = [sys.executable, __file__, "--here", "--shape", shape]
        command += ["--seconds", str(options.seconds), "--rounds", str(options.rounds)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"{shape} failed:\n{done.stderr}")
        times = results[shape] = json.loads(done.stdout.splitlines()[-1])
        ratio = times["recorded_s"] / times["plain_s"]
        print(f"| {shape} | {ratio:.2f} | {times['hand_over_s']:.2f} s |", flush=True)
    worst = max(results, key=lambda shape: results[shape]["recorded_s"] / results[shape]["plain_s"])
    print(f"\nWorst: {worst}, {results[worst]['recorded_s'] / results[worst]['plain_s']:.2f}")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(results, file, indent=1)


if __name__ == "__main__":
    main()
