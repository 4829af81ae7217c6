"""How whole-job answers grow with the number of ranks.

    python -m benchmarks.ranks_scale SOURCE_RUN FOLDER --ranks 8 32 128 512 1024 --events 5000 --svg docs/images/ranks-growth.svg
    python -m benchmarks.ranks_scale SOURCE_RUN FOLDER --ranks 64 --events 500000

For each number of ranks: the run is made by build_many_ranks.py, its roll-ups by `roll_up_ranks` (2 processes), and then each
answer by a fresh process: the first screen (open), `ranks`, `collectives`, findings. Wall time, processor time (user and
system, children included) and peak memory (of the largest process) of each, starts of Python and imports included. One JSON
line per size; runs are deleted again unless --keep is given. A run that is there already is used as it is.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path

PHASES = ("roll_up", "open", "ranks", "collectives", "findings")


def answer(what: str, directory: str) -> None:
    """One answer about a run, as a process of its own gives it."""
    from explorer.store.arrow_alone import keep_pandas_out

    keep_pandas_out()
    if what == "roll_up":
        from explorer.analysis.rank_rollups import roll_up_ranks

        failed = roll_up_ranks(directory, processes=2)
        assert not failed, failed[:3]
        return
    from explorer.analysis.run import open_run

    run = open_run(directory)
    if what == "open":
        from explorer.analysis.key_figures import overview
        from explorer.analysis.run_facts import run_facts

        run_facts(run)
        assert len({story.rank for story in overview(run).stories}) == len(run.ranks)
    elif what == "ranks":
        from explorer.analysis.ranks.job_report import job_report

        report = job_report(run)
        assert len(report.ranks) == len(run.ranks)
        assert report.stragglers
    elif what == "collectives":
        assert run.collectives().arrow().num_rows
    else:
        assert "straggler" in {finding.rule for finding in run.bottlenecks()}


def measured(what: str, directory: str) -> dict[str, float]:
    """Wall and processor seconds and peak MiB of one answer in a fresh process."""
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.ranks_scale", "--answer", what, directory],
        capture_output=True,
        text=True,
        check=False,
    )
    wall = time.perf_counter() - began
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    usage = json.loads(done.stdout.splitlines()[-1])
    return {"wall_s": wall, **usage}


def _usage() -> dict[str, float]:
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return {
        "cpu_s": own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime,
        "peak_mib": max(own.ru_maxrss, children.ru_maxrss) / 1024,
    }


def growth_svg(rows: list[dict[str, float]]) -> str:
    """Processor time over ranks, both logarithmic, one line per answer; a dashed line grows as the ranks do."""
    width, height, left, top, right, bottom = 720, 420, 64, 24, 150, 48
    colors = ("#7b6cc4", "#2f7ebc", "#2a9d6f", "#c98a1b", "#c4513f")
    values = [row[f"{phase}_cpu_s"] for row in rows for phase in PHASES]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    first, last = math.log2(rows[0]["ranks"]), math.log2(rows[-1]["ranks"])

    def x(ranks: float) -> float:
        return left + (math.log2(ranks) - first) / max(last - first, 1e-9) * (width - left - right)

    def y(seconds: float) -> float:
        return height - bottom - (math.log10(seconds) - low) / max(high - low, 1) * (height - top - bottom)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">',
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
    ]
    for power in range(low, high + 1):
        at = y(10.0**power)
        parts.append(f'<path d="M{left} {at:.1f}H{width - right}" stroke="#dddddd"/>')
        parts.append(f'<text x="{left - 8}" y="{at + 4:.1f}" text-anchor="end">{10.0**power:g} s</text>')
    for row in rows:
        at = x(row["ranks"])
        parts.append(f'<path d="M{at:.1f} {top}V{height - bottom}" stroke="#eeeeee"/>')
        parts.append(
            f'<text x="{at:.1f}" y="{height - bottom + 18}" text-anchor="middle">{row["ranks"]:g}</text>'
        )
    parts.append(
        f'<text x="{(left + width - right) / 2:.1f}" y="{height - 8}" text-anchor="middle">ranks; processor time per answer</text>'
    )
    begin = rows[0]["roll_up_cpu_s"]
    times = rows[-1]["ranks"] / rows[0]["ranks"]
    if begin * times <= 10.0**high:
        parts.append(
            f'<path d="M{x(rows[0]["ranks"]):.1f} {y(begin):.1f}L{x(rows[-1]["ranks"]):.1f} {y(begin * times):.1f}"'
            ' stroke="#999999" stroke-dasharray="5 4" fill="none"/>'
        )
        parts.append(
            f'<text x="{width - right + 8}" y="{y(begin * times) - 8:.1f}" fill="#777777">linear</text>'
        )
    labels: list[float] = []
    for phase, color in sorted(zip(PHASES, colors), key=lambda pair: -rows[-1][f"{pair[0]}_cpu_s"]):
        points = " ".join(f"{x(row['ranks']):.1f},{y(row[f'{phase}_cpu_s']):.1f}" for row in rows)
        parts.append(f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="2"/>')
        at = max([y(rows[-1][f"{phase}_cpu_s"]) + 4, *(one + 15 for one in labels)])
        labels.append(at)
        name = phase.replace("_", "-")
        parts.append(f'<text x="{width - right + 8}" y="{at:.1f}" fill="{color}">{name}</text>')
    return "\n".join([*parts, "</svg>", ""])


def main() -> None:
    if sys.argv[1] == "--answer":
        answer(*sys.argv[2:4])
        print(json.dumps(_usage()))
        return
    from benchmarks.build_many_ranks import build

    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("source")
    parser.add_argument("folder")
    parser.add_argument("--ranks", type=int, nargs="+", default=[8, 32, 128, 512, 1024])
    parser.add_argument("--events", type=int, default=5_000, help="per rank")
    parser.add_argument("--svg", help="draw processor time over ranks to this file")
    parser.add_argument("--keep", action="store_true", help="leave the runs there")
    given = parser.parse_args()
    rows: list[dict[str, float]] = []
    for ranks in given.ranks:
        directory = os.path.join(given.folder, f"ranks-{ranks}-{given.events}")
        if not os.path.isdir(directory):
            build(given.source, directory, ranks, given.events)
        shutil.rmtree(os.path.join(directory, "rollup"), ignore_errors=True)
        row: dict[str, float] = {"ranks": ranks, "events": _events(directory)}
        for phase in PHASES:
            row |= {f"{phase}_{name}": value for name, value in measured(phase, directory).items()}
        row["load"] = os.getloadavg()[0]
        rows.append(row)
        print(json.dumps({key: round(value, 2) for key, value in row.items()}), flush=True)
        if not given.keep:
            shutil.rmtree(directory)
    if given.svg:
        Path(given.svg).write_text(growth_svg(rows))


def _events(directory: str) -> int:
    from explorer.store.reader import RunReader

    return sum(part.rows for part in RunReader(directory).parts("events"))


if __name__ == "__main__":
    main()
