"""Import speed and memory against other readers of the same file, in one run, each in its own process.

    python benchmarks/import_speed.py /tmp/big.json [--peer-python /path/to/venv/bin/python] [--repeat 3]

Readers: `import` (neuron-explorer to a fully linked run in Parquet), `json` (json.loads alone), `orjson` (orjson.loads
alone), `hta` (HolisticTraceAnalysis, parse_traces of one rank). Peers run in the interpreter given by --peer-python and are
left out where it lacks them. Per reader: wall seconds, processor seconds of all its processes, peak memory (sum of the
proportional set sizes), events per wall second and per processor second. On a busy machine compare processor seconds; the
single-process peers' wall and processor seconds are the same on an idle one.

Make the input with benchmarks/build_big_trace.py.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
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
}
MODULES = {"json": "json", "orjson": "orjson", "hta": "hta"}


def measure(command: list[str]) -> dict[str, Any]:
    """Run a command and watch it and its children."""
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
    parser.add_argument("trace", type=Path)
    parser.add_argument("--peer-python", default=sys.executable)
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--only", nargs="*", default=["import", *PEERS])
    chosen = parser.parse_args()
    size = chosen.trace.stat().st_size
    results: dict[str, Any] = {}
    events = 0
    for reader in chosen.only:
        runs = []
        for _ in range(chosen.repeat):
            if reader == "import":
                folder = Path(tempfile.mkdtemp(prefix="import-speed-"))
                command = [
                    sys.executable,
                    "-m",
                    "explorer.cli.main",
                    "import",
                    str(chosen.trace),
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
                probe = [chosen.peer_python, "-c", f"import {MODULES[reader]}"]
                if subprocess.run(probe, capture_output=True).returncode:
                    break
                runs.append(measure([chosen.peer_python, "-c", PEERS[reader], str(chosen.trace.resolve())]))
        if runs:
            best = min(runs, key=lambda run: run["cpu_s"])
            best["runs"] = len(runs)
            results[reader] = best
    for best in results.values():
        best["events_per_s"] = round(events / best["wall_s"]) if events else None
        best["events_per_cpu_s"] = round(events / best["cpu_s"]) if events and best["cpu_s"] else None
    document = {
        "trace_bytes": size,
        "events": events,
        "cpus": os.cpu_count(),
        "load": os.getloadavg(),
        "python": sys.version.split()[0],
        "readers": results,
    }
    print(json.dumps(document, indent=1))


if __name__ == "__main__":
    main()
