"""How long the views take on big synthetic runs: each cold, in a fresh process, from Parquet; and peak memory.

python -m benchmarks.analysis_speed [--events 1000000] [--threads 2] [--memory 2GB] [--repeat 3]
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile

from benchmarks.big_run import write_big_run

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
)
_ONE = """
import resource, sys, time
start = time.perf_counter()
from explorer.analysis.run import open_run
run = open_run(sys.argv[1], threads=int(sys.argv[3]), memory_limit=sys.argv[4])
opened = time.perf_counter()
rows = len(run.view(sys.argv[2]))
done = time.perf_counter()
print(rows, opened - start, done - opened, time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


def main() -> None:
    """Write a run, ask every view in a process of its own, print a table and JSON."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--memory", default="2GB")
    parser.add_argument("--repeat", type=int, default=3)
    arguments = parser.parse_args()
    results = []
    with tempfile.TemporaryDirectory() as folder:
        directory = write_big_run(os.path.join(folder, "run"), arguments.events)
        for view in VIEWS:
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
            print(
                f"{view:16} {asked:7.3f} s query  {opened:6.3f} s open  {cpu:7.3f} s cpu  {peak:7.0f} MiB  {int(rows):,} rows"
            )
    load = os.getloadavg()[0]
    print(
        f"{arguments.events:,} events, {arguments.threads} threads, {platform.processor() or platform.machine()}, load {load:.1f}"
    )
    print(
        json.dumps(
            {"events": arguments.events, "threads": arguments.threads, "load": load, "results": results}
        )
    )


if __name__ == "__main__":
    main()
