"""Import speed and memory against other readers of the same file, in one run, each in its own process.

    python -m benchmarks.import_speed /tmp/big.json [--peer-python /path/to/venv/bin/python] [--repeat 3]
    python -m benchmarks.import_speed --quick
    python -m benchmarks.import_speed --large [--tracelens /path/to/TraceLens]

Readers: `import` (neuron-explorer to a fully linked run in Parquet), `json` (json.loads alone), `orjson` (orjson.loads
alone), `hta` (HolisticTraceAnalysis, parse_traces of one rank), `tracelens` (AMD's TraceLens: its loader and its linked tree,
by the calls of its TreePerfAnalyzer.from_file with the defaults). Peers run in the interpreter given by --peer-python and are
left out, with the reason, where it lacks them. Per reader: wall seconds, processor seconds of all its processes, peak memory
(sum of the proportional set sizes), events per wall second and per processor second; last, how many times a peer's events per
second the import reads. On a busy machine compare processor seconds; the single-process peers' wall and processor seconds are
the same on an idle one.

Make the input with benchmarks/build_big_trace.py. `--quick` does all of it by itself: builds a 130 MB trace and, from the
package index, an environment with the peers (both kept in the temporary folder for the next time), measures each reader
once, and prints a Markdown table. Where the peers cannot be installed, json.loads is the measure. `--large` does the same with
a 500 MB trace, and imports one of 2 GB: under six minutes on two idle cores, with 3 GB of room in the temporary folder.
AMD's TraceLens is in no package index (what bears its name there is something else): name a checkout of its repository with
--tracelens; of the checkout TraceLens/util.py and TraceLens/Trace2Tree/trace_to_tree.py are needed, and orjson beside them.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

PEERS = {
    "json": "import json, sys; print(len(json.load(open(sys.argv[1]))['traceEvents']))",
    "orjson": "import orjson, sys; print(len(orjson.loads(open(sys.argv[1], 'rb').read())['traceEvents']))",
    "hta": (
        "import sys\n"
        "from hta.common.trace import Trace\n"
        "trace = Trace(trace_files={0: sys.argv[1]}, trace_dir='/')\n"
        "trace.parse_traces(max_ranks=1, use_multiprocessing=False)\n"
        "print(len(trace.get_trace(0)))"
    ),
    "tracelens": (
        "import sys\n"
        "sys.path[:0] = sys.argv[2:]\n"
        "from TraceLens.Trace2Tree.trace_to_tree import TraceToTree\n"
        "from TraceLens.util import DataLoader\n"
        "events = DataLoader.load_data(sys.argv[1])['traceEvents']\n"
        "tree = TraceToTree(events, event_to_category=TraceToTree.default_categorizer)\n"
        "tree.build_tree()\n"
        "print(len(tree.events))"
    ),
}
LARGE_BYTES = (500_000_000, 2_000_000_000)
LONGEST_S = 90
"""A peer that takes longer is stopped, and said to; --longest sets another limit."""
KEPT = Path(tempfile.gettempdir()) / "neuron-explorer-benchmarks"
MODULES = {
    "json": "json",
    "orjson": "orjson",
    "hta": "hta",
    "tracelens": "orjson, TraceLens.Trace2Tree.trace_to_tree",
}


@dataclass(frozen=True, slots=True)
class Peers:
    """Where the peers are: an interpreter that has them, TraceLens's checkout, and the seconds each may take."""

    python: str
    tracelens: Path | None = None
    longest_s: float = LONGEST_S

    def command(self, reader: str, code: str, *arguments: str) -> list[str]:
        """Command that runs `code` for a reader, with a checkout as its last argument where the reader has one."""
        checkout = [str(self.tracelens)] if reader == "tracelens" and self.tracelens else []
        return [self.python, "-c", code, *arguments, *checkout]

    def lacking(self, reader: str) -> str:
        """Why a reader cannot run here, or nothing."""
        if reader == "tracelens" and self.tracelens is None:
            return "no checkout of it was named (--tracelens)"
        probe = f"import sys; sys.path[:0] = sys.argv[1:]; import {MODULES[reader]}"
        done = subprocess.run(self.command(reader, probe), capture_output=True, text=True)
        return done.stderr.strip().rpartition("\n")[2] if done.returncode else ""

    def tracelens_commit(self) -> str | None:
        """Commit of the checkout: git's, or the text of its file COMMIT."""
        if self.tracelens is None:
            return None
        if (self.tracelens / ".git").exists():
            ask = ["git", "-C", str(self.tracelens), "rev-parse", "HEAD"]
            return subprocess.run(ask, capture_output=True, text=True).stdout.strip() or None
        named = self.tracelens / "COMMIT"
        return named.read_text().strip() if named.is_file() else None


def measure(command: list[str], longest_s: float = float("inf")) -> dict[str, Any]:
    """Run a command and watch it and its children; one that takes longer than `longest_s` is stopped."""
    began = time.perf_counter()
    process = psutil.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    peak = 0
    processor: dict[int, float] = {}
    while process.poll() is None:
        memory = 0
        for member in [process, *_children(process)]:
            try:
                memory += member.memory_full_info().pss
                times = member.cpu_times()
                processor[member.pid] = times.user + times.system
            except psutil.Error:
                continue
        peak = max(peak, memory)
        if time.perf_counter() - began > longest_s:
            for member in [*_children(process), process]:
                member.kill()
        time.sleep(0.1)
    wall = time.perf_counter() - began
    errors = process.stderr.read().decode()[-400:] if process.stderr else ""
    return {
        "wall_s": round(wall, 2),
        "cpu_s": round(sum(processor.values()), 2),
        "peak_mb": round(peak / 1e6),
        "returncode": process.returncode,
        "errors": errors if process.returncode not in (0, 4) else "",
    }


def _children(process: psutil.Popen) -> list[psutil.Process]:
    try:
        return process.children(recursive=True)
    except psutil.Error:
        return []


def size_of(directory: Path) -> int:
    """Bytes of all files below a directory."""
    return sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())


def main() -> None:
    """Command line: prints one JSON document."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("trace", type=Path, nargs="?")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--peer-python")
    parser.add_argument("--tracelens", type=Path, help="checkout of AMD's TraceLens")
    parser.add_argument("--longest", type=float, default=LONGEST_S, help="seconds that a peer may take")
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--only", nargs="*", default=["import", *PEERS])
    chosen = parser.parse_args()
    if not (chosen.quick or chosen.large or chosen.trace):
        parser.error("name a trace, or give --quick or --large")
    checkout = chosen.tracelens.resolve() if chosen.tracelens else None
    default = peers_python if chosen.quick or chosen.large else lambda: sys.executable
    peers = Peers(chosen.peer_python or default(), checkout, chosen.longest)
    if chosen.quick:
        print(markdown(compare(built_trace(), peers, chosen.only, 1)))
    elif chosen.large:
        print(markdown(compare(built_trace(LARGE_BYTES[0]), peers, chosen.only, 1)), flush=True)
        print("\n" + markdown(compare(built_trace(LARGE_BYTES[1]), peers, ["import"], 1)))
    else:
        print(json.dumps(compare(chosen.trace, peers, chosen.only, chosen.repeat), indent=1))


def compare(trace: Path, peers: Peers, readers: list[str], repeat: int) -> dict[str, Any]:
    """Measure each reader `repeat` times; of its runs the one with the fewest processor seconds counts."""
    size = trace.stat().st_size
    results: dict[str, Any] = {}
    events = 0
    for reader in readers:
        if reader != "import" and (reason := peers.lacking(reader)):
            print(f"{reader} is left out: {reason}", file=sys.stderr)
            continue
        runs = []
        for _ in range(repeat):
            if reader == "import":
                folder = Path(tempfile.mkdtemp(prefix="import-speed-"))
                command = [
                    sys.executable,
                    "-m",
                    "explorer.cli.main",
                    "import",
                    str(trace),
                    "-o",
                    str(folder / "run"),
                ]
                runs.append(measure(command))
                from explorer.store.reader import RunReader

                (manifest,) = RunReader(folder / "run").manifests.values()
                events = manifest.counts["source_total"]
                runs[-1]["run_bytes"] = size_of(folder / "run")
                runs[-1]["size_ratio"] = round(size / runs[-1]["run_bytes"], 1)
                shutil.rmtree(folder)
            else:
                command = peers.command(reader, PEERS[reader], str(trace.resolve()))
                runs.append(measure(command, peers.longest_s))
        if runs and runs[-1]["returncode"] not in (0, 4):
            print(f"{reader} failed or took longer than {peers.longest_s:g} s: {runs[-1]}", file=sys.stderr)
        elif runs:
            best = min(runs, key=lambda run: run["cpu_s"])
            best["runs"] = len(runs)
            results[reader] = best
    for best in results.values():
        best["events_per_s"] = round(events / best["wall_s"]) if events else None
        best["events_per_cpu_s"] = round(events / best["cpu_s"]) if events and best["cpu_s"] else None
    return {
        "trace_bytes": size,
        "events": events,
        "cpus": os.cpu_count(),
        "load": os.getloadavg(),
        "python": sys.version.split()[0],
        "tracelens_commit": peers.tracelens_commit() if "tracelens" in results else None,
        "readers": results,
    }


def built_trace(size_bytes: int = 130_000_000) -> Path:
    """A trace built from real ones, once for each state of the script that builds it."""
    from benchmarks import build_big_trace
    from benchmarks.build_big_trace import DEFAULT_TRACES, build

    script = hashlib.sha256(Path(build_big_trace.__file__).read_bytes()).hexdigest()[:8]
    path = KEPT / f"built-{size_bytes}-{script}.json"
    if not path.exists():
        KEPT.mkdir(exist_ok=True)
        folder = Path(os.environ.get("NE_TRACES", Path(__file__).resolve().parents[2] / "shared" / "traces"))
        partial = path.with_suffix(".partial")
        build([folder / name for name in DEFAULT_TRACES], size_bytes, partial)
        partial.rename(path)
    return path


def peers_python() -> str:
    """An interpreter that has the peers, or else this one."""
    folder = KEPT / "peers"
    python = folder / "bin" / "python"
    try:
        if not python.exists():
            subprocess.run(
                [sys.executable, "-m", "venv", folder], check=True, capture_output=True, timeout=60
            )
            wanted = ["HolisticTraceAnalysis", "orjson"]
            install = [str(python), "-m", "pip", "install", "-q", *wanted]
            subprocess.run(install, check=True, capture_output=True, timeout=300)
        return str(python)
    except (OSError, subprocess.SubprocessError):
        shutil.rmtree(folder, ignore_errors=True)
        return sys.executable


def markdown(document: dict[str, Any]) -> str:
    """The comparison as a table; ratios are those of events per second to HTA's loader, or json.loads without it."""
    readers = document["readers"]
    base = next(name for name in ("hta", "json", *readers) if name in readers)
    lines = [
        f"{document['events']:,} events, {document['trace_bytes'] / 1e6:,.0f} MB of JSON, {document['cpus']} CPUs, "
        f"load {document['load'][0]:.1f} after it, Python {document['python']}.",
        "",
        f"| reader | wall s | CPU s | peak MB | events/s | events/CPU s | x {base} (wall) | x {base} (CPU) |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, run in readers.items():
        by_wall = readers[base]["wall_s"] / run["wall_s"]
        by_processor = readers[base]["cpu_s"] / run["cpu_s"]
        lines.append(
            f"| {name} | {run['wall_s']:.2f} | {run['cpu_s']:.2f} | {run['peak_mb']:,} | {run['events_per_s']:,} "
            f"| {run['events_per_cpu_s']:,} | {by_wall:.1f} | {by_processor:.1f} |"
        )
    if "import" in readers:
        run = readers["import"]
        lines += [
            "",
            f"The run takes {run['run_bytes'] / 1e6:.1f} MB: the JSON is {run['size_ratio']} times as large.",
            *(_against(run, name, peer) for name, peer in readers.items() if name != "import"),
        ]
    if document["tracelens_commit"]:
        lines.append(f"TraceLens: commit {document['tracelens_commit']}, loading and tree building only.")
    return "\n".join(lines)


def _against(run: dict[str, Any], name: str, peer: dict[str, Any]) -> str:
    by_wall = peer["wall_s"] / run["wall_s"]
    return f"The import reads {by_wall:.1f} times {name}'s events a second ({peer['cpu_s'] / run['cpu_s']:.1f} by CPU)."


if __name__ == "__main__":
    main()
