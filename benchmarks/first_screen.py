"""How long the terminal UI takes: from the start of the process to the first screen, and from a key to its repaint.

    python -m benchmarks.first_screen [--events 1000000] [--run RUN] [--repeat 5] [--size 120x36] [--keys 40] [--json]

Runs `neuron-explorer RUN` in a pseudo-terminal, as a user does, and reads what it draws. On a synthetic run of `--events`
events (`benchmarks/big_run.py`) where no `--run` is given. Three moments, each in wall seconds and in processor seconds of
the process so far: `frame` (the screens and keys are drawn), `overview` (the step's bar with its key figures), `findings`
(the list of bottlenecks, the last thing to arrive). Then keys
are pressed: first from screen to screen while the bottlenecks are still being looked for (`busy`), then every key of `KEYS`
on the screen it belongs to, once that is still. A key is answered when the terminal has got the first picture after it.
Besides wall time, two others of the thread that draws are given, which hold on a busy machine too: wall time without what it
waited for a core (the rest is work, and waiting for other threads of the program), and processor time. The peak memory is that
of the process at the end.

The files of the run are read once before (the page cache is warm), as after recording or importing, and Python's modules are
compiled by a start before the ones that count, as an installation does.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import pty
import re
import select
import signal
import statistics
import struct
import sys
import tempfile
import termios
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.big_run import write_big_run

ROOT = Path(__file__).resolve().parents[1]
KEYS: tuple[tuple[str, str, str], ...] = (
    ("", "overview", "j j k d T b b"),
    ("4", "ops", "j j s s S r j i j m j o"),
    ("2", "timeline", "w w w d d a s j j l l c x x m . . ,"),
    ("3", "source", "j j n n k c c f f"),
    ("5", "findings", "j j + + - k"),
    ("6", "memory", "m m d"),
    ("7", "ranks", "m m l l h r"),
    ("8", "counters", "w d s a j"),
    ("0", "compare", "? esc ^p esc K K"),
    ("9", "sql", "a b esc b"),
)
"""Number key where the screen is not in front, its name, and the keys to press on it."""
_CODES = {"esc": "\x1b", "^p": "\x10"}
MOMENTS = {"frame": "Overview", "overview": "Where a step", "findings": "finding"}
"""What stands on the terminal from each moment on."""
FINDINGS = re.compile(r"What to change\s+\d+ findings?\b")
STILL_SECONDS = 0.25
"""Without output for so long, the program has nothing more to draw."""
BETWEEN_PICTURES_SECONDS = 0.004
"""One picture is written in pieces that follow each other faster than this."""
PATIENCE_SECONDS = 300.0
BUSY_KEYS = "4 1 5 1 8 1 2 3 1"
"""Pressed one after the other while the bottlenecks are still being looked for."""
_ESCAPES = re.compile(rb"\x1b(?:\[[0-9;?<>=]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-_P][^\x1b]*?)")


class Answer(NamedTuple):
    """Seconds from a key to its picture; of these the drawing thread worked for `processor_s`, and was ready but had to wait
    for a core for `core_s`: what other work on the machine takes from it, and workers of the program itself."""

    key: str
    wall_s: float
    processor_s: float
    core_s: float

    @property
    def own_wall_s(self) -> float:
        """Wall time without waiting for a core."""
        return self.wall_s - self.core_s


class Terminal:
    """A program in a pseudo-terminal; `seen` is all it has written, without escape sequences."""

    def __init__(
        self, command: list[str], columns: int, rows: int, environment: Mapping[str, str] = os.environ
    ) -> None:
        self.seen = ""
        self.started = time.perf_counter()
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            os.execve(command[0], command, dict(environment))
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read(self, seconds: float) -> bool:
        """Take what comes within this time; False where nothing does, or the program has ended."""
        ready, _, _ = select.select([self.master], [], [], seconds)
        if not ready:
            return False
        try:
            data = os.read(self.master, 1 << 16)
        except OSError:
            return False
        self.seen += _ESCAPES.sub(b"", data).decode("utf-8", "replace")
        return bool(data)

    def wait_still(self) -> None:
        """Until the program draws nothing more and no thread of it works."""
        while True:
            before = self.processor_s()
            while self.read(STILL_SECONDS):
                pass
            if self.processor_s() - before < 0.03:
                return

    def press(self, key: str) -> Answer | None:
        """How long the first picture after a key takes; None where nothing is drawn within a second."""
        worked, waited = self.screen_s()
        begin = time.perf_counter()
        os.write(self.master, _CODES.get(key, key).encode())
        if not self.read(1.0):
            return None
        drawn = time.perf_counter()
        while self.read(BETWEEN_PICTURES_SECONDS):
            drawn = time.perf_counter()
        now_worked, now_waited = self.screen_s()
        return Answer(key, drawn - begin, now_worked - worked, now_waited - waited)

    def screen_s(self) -> tuple[float, float]:
        """Processor time of the thread that draws, and how long it has waited for a core, so far."""
        worked, waited, _ = Path(f"/proc/{self.pid}/task/{self.pid}/schedstat").read_text().split()
        return int(worked) / 1e9, int(waited) / 1e9

    def processor_s(self) -> float:
        """User and system time of the process so far, all threads."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def peak_mib(self) -> float:
        """Largest resident memory so far."""
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith("VmHWM"):
                return int(line.split()[1]) / 1024
        return 0.0

    def close(self) -> None:
        """End the program and take its last words."""
        os.write(self.master, b"q")
        end = time.monotonic() + 10
        while time.monotonic() < end:
            self.read(0.05)
            if os.waitpid(self.pid, os.WNOHANG)[0]:
                break
        else:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.master)


def first_screen(start: Callable[[], Terminal]) -> dict[str, Any]:
    """Start once, note every moment of `MOMENTS`, and quit."""
    terminal = start()
    noted: dict[str, Any] = {}
    end = time.monotonic() + PATIENCE_SECONDS
    while len(noted) < len(MOMENTS) and time.monotonic() < end:
        terminal.read(0.5)
        for name, text in MOMENTS.items():
            there = FINDINGS.search(terminal.seen) if name == "findings" else text in terminal.seen
            if name not in noted and there:
                noted[name] = (time.perf_counter() - terminal.started, terminal.processor_s())
    missing = set(MOMENTS) - set(noted)
    noted["peak_mib"] = terminal.peak_mib()
    terminal.close()
    if missing:
        raise SystemExit(f"{', '.join(missing)} did not appear; drawn was:\n{terminal.seen[-2000:]}")
    return noted


def key_seconds(start: Callable[[], Terminal], most: int) -> tuple[dict[str, list[Answer]], float]:
    """Latencies of every key by screen, and the peak memory in MiB."""
    terminal = start()
    latencies: dict[str, list[Answer]] = {}
    while MOMENTS["overview"] not in terminal.seen:
        terminal.read(1.0)
    own = latencies.setdefault("busy", [])
    for key in BUSY_KEYS.split():
        time.sleep(0.15)
        while terminal.read(0.0):
            pass
        took = terminal.press(key)
        if took is not None:
            own.append(took)
    while not FINDINGS.search(terminal.seen):
        terminal.read(1.0)
    for number, name, keys in KEYS:
        terminal.wait_still()
        own = latencies.setdefault(name, [])
        for key in f"{number} {keys}".split()[:most]:
            took = terminal.press(key)
            if took is not None:
                own.append(took)
            terminal.wait_still()
    peak = terminal.peak_mib()
    terminal.close()
    return latencies, peak


_MEASURES: dict[str, tuple[str, Callable[[Answer], float]]] = {
    "wall": ("wall", lambda answer: answer.wall_s),
    "own_wall": ("without waiting for a core", lambda answer: answer.own_wall_s),
    "processor": ("processor", lambda answer: answer.processor_s),
}
"""Title and seconds of each measure of a key, by its name in the JSON."""


def main() -> None:
    """Print a table, or JSON."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--run", help="a run that exists, instead of a synthetic one")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--size", default="120x36")
    parser.add_argument("--keys", type=int, default=40, help="keys per screen at most; 0: do not press any")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    columns, rows = (int(part) for part in arguments.size.split("x"))
    with tempfile.TemporaryDirectory() as folder:
        run = arguments.run or write_big_run(os.path.join(folder, "run"), arguments.events)
        command = [sys.executable, "-m", "explorer.cli.main", run if "/" in run else f"./{run}"]
        start = partial(Terminal, command, columns, rows, _environment(os.path.join(folder, "compiled")))
        first_screen(start)  # reads the run's files once, and compiles what is imported
        starts = [first_screen(start) for _ in range(arguments.repeat)]
        latencies, peak = ({}, 0.0) if not arguments.keys else key_seconds(start, arguments.keys)
    moments = {
        name: {
            "wall_s": statistics.median(start[name][0] for start in starts),
            "worst_wall_s": max(start[name][0] for start in starts),
            "processor_s": statistics.median(start[name][1] for start in starts),
        }
        for name in MOMENTS
    }
    every = [answer for own in latencies.values() for answer in own]
    spreads = {
        f"{name}_ms": _spread([1e3 * measure(answer) for answer in every])
        for name, (_, measure) in _MEASURES.items()
    }
    keys = {"count": len(every), **spreads}
    peak = max(peak, *(start["peak_mib"] for start in starts))
    load = os.getloadavg()[0]
    if arguments.json:
        print(json.dumps({"run": run, "moments": moments, "keys": keys, "peak_mib": peak, "load": load}))
        return
    print(
        f"{run if arguments.run else f'{arguments.events:,} events'}, {arguments.size}, median of {arguments.repeat}, load {load:.1f}\n"
    )
    print("| moment | wall s | worst wall s | processor s |\n|---|---|---|---|")
    for name, row in moments.items():
        print(f"| {name} | {row['wall_s']:.2f} | {row['worst_wall_s']:.2f} | {row['processor_s']:.2f} |")
    if not every:
        return
    print(f"\n| {len(every)} keys | p50 ms | p95 ms | worst ms |\n|---|---|---|---|")
    for name, (title, _) in _MEASURES.items():
        print(f"| {title} | " + " | ".join(f"{value:.0f}" for value in spreads[f"{name}_ms"]) + " |")
    print(f"\npeak {peak:.0f} MiB")
    for name, own in latencies.items():
        if own:
            said = ", ".join(
                f"{title} {1e3 * measure(worst):.0f} ms ({worst.key})"
                for title, measure in _MEASURES.values()
                for worst in [max(own, key=measure)]
            )
            print(f"  {name:9} {len(own):2} keys, at worst: {said}")


def _environment(compiled: str) -> dict[str, str]:
    """Variables of the program: a terminal of many colours, and compiled modules in a folder of their own, whatever the
    caller's settings for them."""
    own = {
        "TERM": "xterm-256color",
        "COLORTERM": "truecolor",
        "PYTHONPATH": str(ROOT),
        "PYTHONPYCACHEPREFIX": compiled,
    }
    dropped = ("COLUMNS", "LINES", "PYTHONDONTWRITEBYTECODE")
    return {name: value for name, value in os.environ.items() if name not in dropped} | own


def _spread(values: list[float]) -> tuple[float, float, float]:
    """Median, 95th percentile and largest."""
    ordered = sorted(values) or [0.0]
    return ordered[len(ordered) // 2], ordered[min(len(ordered) - 1, len(ordered) * 95 // 100)], ordered[-1]


if __name__ == "__main__":
    main()
