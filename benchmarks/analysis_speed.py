"""How long answers take: each view cold, in a process of its own, from Parquet; and load + breakdown of a trace against HTA.

    python -m benchmarks.analysis_speed [--events 1000000] [--threads 2] [--memory 2GB] [--repeat 3]
    python -m benchmarks.analysis_speed --quick [--trace BIG.json | --traces FOLDER] [--peer-python PYTHON]

The views are measured on a synthetic run (`benchmarks/big_run.py`). `--quick` (under three minutes on a quiet machine) also
times `neuron-explorer breakdown TRACE` on a trace of over 100 MB, first without and then with its imported form in the cache,
against HolisticTraceAnalysis, all in one run: wall seconds, processor seconds and peak memory (proportional set sizes of all
processes). HTA runs in --peer-python, by default the environment neuron-explorer-peers in the temporary folder, which is made
if it is not there; where HTA cannot be installed, reading the file with orjson into pandas stands in for it and is named.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from typing import Any

from benchmarks.big_run import write_big_run
from benchmarks.build_big_trace import DEFAULT_TRACES, build
from benchmarks.import_speed import measure

VIEWS = (
    "breakdown",
    "ops",
    "kernels",
    "lines",
    "gaps",
    "host_breakdown",
    "launches",
    "steps_summary",
    "run_health",
    "bottlenecks",
)
QUICK_VIEWS = (
    "breakdown",
    "ops",
    "kernels",
    "lines",
    "gaps",
    "host_breakdown",
    "rank_summary",
    "bottlenecks",
)
TRACE_BYTES = 110_000_000

_ONE = """
import resource, sys, time
start = time.perf_counter()
from explorer.analysis.run import open_run
run = open_run(sys.argv[1], threads=int(sys.argv[3]), memory_limit=sys.argv[4])
opened = time.perf_counter()
rows = len(run.bottlenecks().findings if sys.argv[2] == "bottlenecks" else run.view(sys.argv[2]))
done = time.perf_counter()
cpu = time.process_time()
try:
    # Unlike ru_maxrss, not inherited from the process that started this one.
    peak = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
except OSError:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(rows, opened - start, done - opened, cpu, peak / 1024)
"""

_HTA = """
import sys
from hta.trace_analysis import TraceAnalysis
analysis = TraceAnalysis(trace_files={0: sys.argv[1]}, trace_dir="/")
print(analysis.get_temporal_breakdown(visualize=False).to_string())
"""

_PANDAS = """
import sys, orjson, pandas
frame = pandas.DataFrame(orjson.loads(open(sys.argv[1], "rb").read())["traceEvents"])
print(frame.groupby("cat").dur.sum().to_string())
"""


def main() -> None:
    """Print what was asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--memory", default="2GB")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--trace", type=Path)
    parser.add_argument("--traces", type=Path, help="folder of real traces to build one from")
    parser.add_argument("--peer-python", type=Path)
    arguments = parser.parse_args()
    if arguments.quick:
        with tempfile.TemporaryDirectory() as folder:
            trace = arguments.trace or _built(Path(folder), arguments.traces)
            if trace is not None:
                _against_peer(trace, Path(folder), arguments.peer_python)
    measured = _views(arguments, QUICK_VIEWS if arguments.quick else VIEWS)
    load = os.getloadavg()[0]
    if arguments.quick:
        print(
            f"\n{arguments.events:,} events, {arguments.threads} threads, cold from Parquet, load {load:.1f}\n"
        )
        print(
            "| view | wall s | processor s, process start included | peak MiB | rows |\n|---|---|---|---|---|"
        )
        for row in measured:
            print(
                f"| {row['view']} | {row['query_s']:.2f} | {row['cpu_s']:.2f} | {row['peak_mib']:.0f} | {row['rows']:,} |"
            )
        return
    print(
        json.dumps(
            {"events": arguments.events, "threads": arguments.threads, "load": load, "results": measured}
        )
    )


def _views(arguments: argparse.Namespace, views: tuple[str, ...]) -> list[dict[str, Any]]:
    results = []
    with tempfile.TemporaryDirectory() as folder:
        directory = write_big_run(os.path.join(folder, "run"), arguments.events)
        for view in views:
            command = [sys.executable, "-c", _ONE, directory, view, str(arguments.threads), arguments.memory]
            runs = [
                [
                    float(v)
                    for v in subprocess.run(
                        command, capture_output=True, text=True, check=True
                    ).stdout.split()
                ]
                for _ in range(arguments.repeat)
            ]
            rows, opened, asked, cpu, peak = min(runs, key=lambda values: values[2])
            results.append(
                {
                    "view": view,
                    "rows": int(rows),
                    "open_s": opened,
                    "query_s": asked,
                    "cpu_s": cpu,
                    "peak_mib": peak,
                }
            )
            if not arguments.quick:
                print(
                    f"{view:16} {asked:7.3f} s query  {opened:6.3f} s open  {cpu:7.3f} s cpu  {peak:7.0f} MiB  {int(rows):,} rows",
                    flush=True,
                )
    return results


def _built(folder: Path, traces: Path | None) -> Path | None:
    """A trace of over 100 MB made from real ones, or None where there are none."""
    traces = traces or Path(
        os.environ.get("NE_TRACES", Path(__file__).resolve().parents[2] / "shared" / "traces")
    )
    paths = [path for path in (traces / name for name in DEFAULT_TRACES) if path.is_file()]
    if not paths:
        print(f"No real traces in {traces}: load + breakdown is not measured. Give --trace or --traces.")
        return None
    out = folder / "big.json"
    build(paths, TRACE_BYTES, out)
    return out


def _against_peer(trace: Path, folder: Path, peer_python: Path | None) -> None:
    trace = trace.resolve()
    os.environ["NEURON_EXPLORER_CACHE"] = str(folder / "cache")
    ours = [sys.executable, "-m", "explorer.cli.main", "breakdown", str(trace)]
    rows = {"neuron-explorer, first time": measure(ours), "neuron-explorer, again": measure(ours)}
    python = peer_python or _peers()
    name, code = "HTA", _HTA
    if subprocess.run([str(python), "-c", "import hta"], capture_output=True).returncode:
        name, code = "orjson + pandas, no breakdown (HTA is not installed)", _PANDAS
    rows[name] = peer = measure([str(python), "-c", code, str(trace)])
    print(f"Load + breakdown of {trace.stat().st_size / 1e6:.0f} MB, load {os.getloadavg()[0]:.1f}\n")
    print(
        "| reader | wall s | processor s | peak MB | peer's wall / its wall | its memory / peer's |\n|---|---|---|---|---|---|"
    )
    for reader, row in rows.items():
        if row["errors"]:
            print(f"| {reader} | failed: {' '.join(row['errors'].split())[-120:]} | | | | |")
            continue
        faster, memory = peer["wall_s"] / row["wall_s"], row["peak_mb"] / max(peer["peak_mb"], 1)
        print(
            f"| {reader} | {row['wall_s']:.1f} | {row['cpu_s']:.1f} | {row['peak_mb']} | {faster:.1f} | {memory:.2f} |",
            flush=True,
        )


def _peers() -> Path:
    """The interpreter of an environment with HTA, made where there is none."""
    folder = Path(tempfile.gettempdir()) / "neuron-explorer-peers"
    python = folder / "bin" / "python"
    if not python.exists():
        venv.create(folder, with_pip=True)
        install = [str(python), "-m", "pip", "install", "-q", "HolisticTraceAnalysis"]
        if subprocess.run(install, capture_output=True).returncode:
            subprocess.run([*install[:-1], "pandas", "orjson"], capture_output=True)
    return python


if __name__ == "__main__":
    main()
