"""How whole-job answers grow with the number of ranks.

    python benchmarks/ranks_scale.py SOURCE_RUN FOLDER --ranks 8 32 128 512 1024 --events 5000

For each number of ranks: the run is made by build_many_ranks.py, its roll-ups by `roll_up_ranks` (2 processes), and then a
fresh process each time opens it, answers `ranks`, and finds bottlenecks, with its peak memory. Runs are deleted again.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path


def measured(directory: str) -> dict[str, float]:
    """In a fresh process: seconds to open with a summary, to answer `ranks`, to find bottlenecks; peak MiB."""
    from explorer.analysis.ranks.job_report import job_report
    from explorer.analysis.run import open_run

    began = time.perf_counter()
    run = open_run(directory)
    run.steps().rows()
    opened = time.perf_counter()
    report = job_report(run)
    answered = time.perf_counter()
    findings = run.bottlenecks()
    found = time.perf_counter()
    assert len(report.ranks) == len(run.ranks)
    return {
        "open_s": opened - began,
        "ranks_s": answered - opened,
        "findings_s": found - answered,
        "stragglers": len(report.stragglers),
        "findings": len(findings),
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def main() -> None:
    if sys.argv[1] == "--measure":
        print(json.dumps(measured(sys.argv[2])))
        return
    from benchmarks.build_many_ranks import build
    from explorer.analysis.rank_rollups import roll_up_ranks

    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("source")
    parser.add_argument("folder")
    parser.add_argument("--ranks", type=int, nargs="+", default=[8, 32, 128, 512, 1024])
    parser.add_argument("--events", type=int, default=5_000, help="per rank")
    given = parser.parse_args()
    for ranks in given.ranks:
        directory = os.path.join(given.folder, f"ranks-{ranks}")
        began = time.perf_counter()
        events = build(given.source, directory, ranks, given.events)
        built = time.perf_counter()
        failed = roll_up_ranks(directory, processes=2)
        rolled = time.perf_counter()
        assert not failed, failed[:3]
        size = sum(path.stat().st_size for path in Path(directory).rglob("*") if path.is_file())
        done = subprocess.run(
            [sys.executable, __file__, "--measure", directory], capture_output=True, text=True, check=True
        )
        row = {
            "ranks": ranks,
            "events": events,
            "size_mib": size / 2**20,
            "build_s": built - began,
            "roll_up_s": rolled - built,
            **json.loads(done.stdout),
            "load": os.getloadavg()[0],
        }
        print(json.dumps({key: round(value, 2) for key, value in row.items()}), flush=True)
        shutil.rmtree(directory)


if __name__ == "__main__":
    main()
