"""What recording costs: step time under each way of profiling, over the same steps without any.

python benchmarks/capture_overhead.py [--model small|big|both] [--rounds 7] [--steps 30] [--json FILE]
python benchmarks/capture_overhead.py --quick      three minutes, the four ways that matter most, a Markdown table

Method: one process, one thread; in every round each way of profiling runs the same number of steps, in turn, so that a
slow moment of the machine hits all of them. Times are CPU times of the process (--wall for wall-clock ones): the models
never wait, so the two agree on an idle machine, and only CPU times mean anything on a busy one. The number for a way is the median over rounds of (its median step time / the
median step time without profiling of the same round). Handing a window over happens between steps and is given apart, in
microseconds per event.

Models: `small` is the worst case, a two-layer transformer of width 32 with a single-tensor AdamW: about two thousand op
ranges of one microsecond in a step of a few milliseconds. `big` is three Linear(1536) layers: about a hundred ops in some
forty milliseconds.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

os.environ.setdefault("KINETO_LOG_LEVEL", "6")

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from explorer import neuron_profile
from explorer.store.reader import RunReader


class Attention(nn.Module):
    """Plain attention, written out in many small operations."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)
        self.out = nn.Linear(width, width)

    def split(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        return x.view(batch, length, self.heads, width // self.heads).transpose(1, 2)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.split(self.query(x)), self.split(self.key(x)), self.split(self.value(x))
        scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
        weights = torch.softmax(scores, dim=-1)
        mixed = (weights @ v).transpose(1, 2).reshape(x.shape)
        return self.out(mixed)


class Layer(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.attention = Attention(width, heads)
        self.first = nn.LayerNorm(width)
        self.second = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.first(x))
        hidden = F.gelu(self.up(self.second(x)))
        return x + self.down(hidden)


class SmallModel(nn.Module):
    def __init__(self, width: int = 32, layers: int = 2, words: int = 64) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, width)
        self.layers = nn.ModuleList(Layer(width, 4) for _ in range(layers))
        self.head = nn.Linear(width, words)

    def forward(self, words: Tensor) -> Tensor:
        x = self.embedding(words)
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


def small_step() -> Callable[[], None]:
    """About two thousand op ranges a step."""
    model = SmallModel()
    optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
    words = torch.randint(0, 64, (2, 8))

    def step() -> None:
        logits = model(words)
        loss = F.cross_entropy(logits.view(-1, 64), words.view(-1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step


def big_step() -> Callable[[], None]:
    """About a hundred ops a step."""
    model = nn.Sequential(
        nn.Linear(1536, 1536), nn.ReLU(), nn.Linear(1536, 1536), nn.ReLU(), nn.Linear(1536, 1536)
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    data = torch.randn(128, 1536)

    def step() -> None:
        loss = model(data).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step


clock = time.process_time
Marker = Callable[[], object]


@contextmanager
def nothing() -> Iterator[Marker]:
    yield lambda: None


@contextmanager
def kineto(**options: bool) -> Iterator[Marker]:
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], **options):
        yield lambda: None


HAND_OVER: dict[str, list[float]] = {}


@contextmanager
def ours(name: str, **options: object) -> Iterator[Marker]:
    folder = tempfile.mkdtemp()
    try:
        with neuron_profile(folder + "/run", **options) as prof:  # type: ignore[arg-type]
            yield prof.step
        windows = RunReader(str(prof.directory)).manifests[0].capture["windows"]
        spent = sum(window["stop_ns"] + window["write_ns"] for window in windows)
        HAND_OVER.setdefault(name, []).append(
            spent / 1000 / max(1, sum(window["events"] for window in windows))
        )
    finally:
        shutil.rmtree(folder)


WAYS: dict[str, Callable[[], object]] = {
    "no profiler": nothing,
    "torch.profiler": lambda: kineto(),
    "torch.profiler, with_stack": lambda: kineto(with_stack=True),
    "torch.profiler, record_shapes": lambda: kineto(record_shapes=True),
    "neuron_profile, ops": lambda: ours("neuron_profile, ops", lines=False, record_shapes=False),
    "neuron_profile, ops and lines": lambda: ours("neuron_profile, ops and lines", record_shapes=False),
    "neuron_profile, shapes in every window": lambda: ours(
        "neuron_profile, shapes in every window", record_shapes=True
    ),
}


def median_step(way: Callable[[], object], step: Callable[[], None], steps: int) -> float:
    """Median time of a step in seconds; the first two steps of each recording are warm-up."""
    times = []
    with way() as mark:  # type: ignore[attr-defined]
        for _ in range(steps + 2):
            begin = clock()
            step()
            times.append(clock() - begin)
            mark()
    return statistics.median(times[2:])


QUICK_WAYS = ("no profiler", "torch.profiler", "torch.profiler, with_stack", "neuron_profile, ops and lines")
QUICK_SECONDS = {"small": 110.0, "big": 50.0}


def rounds_of(
    name: str, ways: Sequence[str], steps: int, go_on: Callable[[int], bool]
) -> tuple[list[float], dict[str, list[float]]]:
    """(step seconds without profiler, ratios by way), one number a round."""
    step = small_step() if name == "small" else big_step()
    for _ in range(5):
        step()
    # The first session of a process pays for Kineto's own start.
    for way in ways:
        median_step(WAYS[way], step, 1)
    HAND_OVER.clear()
    ratios: dict[str, list[float]] = {way: [] for way in ways}
    base: list[float] = []
    while go_on(len(base)):
        plain = median_step(WAYS["no profiler"], step, steps)
        base.append(plain)
        for way in ways:
            ratios[way].append(median_step(WAYS[way], step, steps) / plain)
    return base, ratios


def quick() -> None:
    """Both models within three minutes, as Markdown."""
    columns = {}
    for name, seconds in QUICK_SECONDS.items():
        until = time.perf_counter() + seconds
        steps = 30 if name == "small" else 8

        def go_on(done: int, until: float = until) -> bool:
            return done < 3 or time.perf_counter() < until

        base, ratios = rounds_of(name, QUICK_WAYS, steps, go_on)
        hand_over = {way: statistics.median(values) for way, values in HAND_OVER.items()}
        columns[name] = (base, ratios, hand_over)
    small, big = columns["small"], columns["big"]
    print(
        f"\nStep time over the same step without profiler, medians of {len(small[0])} (small) and {len(big[0])} (big) "
        "interleaved rounds; in brackets the middle half of the rounds.\n"
    )
    milliseconds = [f"{1000 * statistics.median(base):.2f} ms" for base, _, _ in (small, big)]
    print(
        f"| | small ops ({milliseconds[0]} a step) | big ops ({milliseconds[1]} a step) | hand-over, us an event |"
    )
    print("|---|---|---|---|")
    for way in QUICK_WAYS:
        cells = []
        for _, ratios, _ in (small, big):
            low, middle, high = statistics.quantiles(ratios[way], n=4)
            cells.append(f"{middle:.2f} ({low:.2f} to {high:.2f})")
        given = f"{small[2][way]:.1f}" if way in small[2] else ""
        print(f"| {way} | {cells[0]} | {cells[1]} | {given} |")


def measure(name: str, rounds: int, steps: int) -> dict[str, dict[str, float]]:
    base, ratios = rounds_of(name, tuple(WAYS), steps, lambda done: done < rounds)
    print(f"\n{name} model: {1000 * statistics.median(base):.2f} ms a step without profiler, {rounds} rounds")
    result = {}
    for way, values in ratios.items():
        ordered = sorted(values)
        hand_over = statistics.median(HAND_OVER[way]) if way in HAND_OVER else float("nan")
        result[way] = {
            "ratio": statistics.median(values),
            "low": ordered[0],
            "high": ordered[-1],
            "hand_over_us": hand_over,
        }
        more = f"   hand-over {hand_over:5.1f} us/event" if way in HAND_OVER else ""
        print(f"  {way:<40} x{statistics.median(values):.3f}  ({ordered[0]:.2f} to {ordered[-1]:.2f}){more}")
    HAND_OVER.clear()
    return result


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", choices=("small", "big", "both"), default="both")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--json", help="write the numbers to this file too")
    parser.add_argument("--wall", action="store_true", help="wall-clock time instead of CPU time")
    parser.add_argument("--quick", action="store_true", help="three minutes, four ways, a Markdown table")
    options = parser.parse_args()
    if options.wall:
        global clock
        clock = time.perf_counter
    torch.set_num_threads(1)
    torch.manual_seed(0)
    print(
        f"Python {platform.python_version()}, torch {torch.__version__}, {os.cpu_count()} CPUs, {platform.machine()}"
    )
    if options.quick:
        quick()
        return
    names = ("small", "big") if options.model == "both" else (options.model,)
    results = {name: measure(name, options.rounds, options.steps) for name in names}
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(results, file, indent=1)


if __name__ == "__main__":
    main()
