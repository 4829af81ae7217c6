"""Write docs/tutorial.md: run the programs of examples/tutorial, record each and put what was printed into the page.

python docs/make_tutorial.py                  takes about three minutes
python docs/make_tutorial.py --rounds 9 --tries 3       steadier on a busy machine

The prose stands in docs/tutorial.md.in. Everything in a code block of the page was printed by a program.
"""

from __future__ import annotations

import argparse
import difflib
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from explorer import open_run

DOCS = Path(__file__).resolve().parent
PROGRAMS = [DOCS.parent / "examples" / "tutorial" / f"step{number}.py" for number in range(6)]
VERB = [str(Path(sys.executable).with_name("neuron-explorer"))]
TIMED = """
import pathlib, runpy, tempfile, time
names = runpy.run_path("train.py", run_name="timed")
torch, steps = names["torch"], 20
torch.manual_seed(0)
torch.set_num_threads(1)
model = names["Router"]()
loader = names["DataLoader"](names["Tickets"](512), batch_size=32, shuffle=True, drop_last=True)
with tempfile.TemporaryDirectory() as folder:
    names["train"](model, loader, 4, pathlib.Path(folder))
    start = time.process_time()
    names["train"](model, loader, steps, pathlib.Path(folder))
    print((time.process_time() - start) / steps)
"""


def printed(command: list[str], folder: Path) -> str:
    """Standard output of a command that must succeed."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "OMP_NUM_THREADS": "1", "COLUMNS": "100", "NO_COLOR": "1"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{done.stdout}\n{done.stderr}")
    return done.stdout


def step_times_ms(folder: Path, rounds: int) -> list[float]:
    """Processor time of one step of each program, not recorded: medians of interleaved rounds."""
    times: list[list[float]] = [[] for _ in PROGRAMS]
    for _ in range(rounds):
        for number, program in enumerate(PROGRAMS):
            shutil.copy(program, folder / "train.py")
            times[number].append(1000 * float(printed([sys.executable, "-c", TIMED], folder)))
    return [statistics.median(found) for found in times]


def record(folder: Path, run: str, count: int) -> None:
    """Record train.py `count` times and keep the quietest recording: the one with the shortest median step."""
    tries = [f"{run}-try{number}" for number in range(count)]
    for directory in tries:
        printed([*VERB, "record", "-o", directory, "--", "python", "train.py"], folder)
    best = min(tries, key=lambda directory: step_ns(folder / directory))
    (folder / best).rename(folder / run)


def step_ns(directory: Path) -> int:
    """The median step of a run."""
    with open_run(directory) as run:
        return int(run.summary().rows()[0]["step_ns"])


def first_finding(text: str) -> str:
    """The head of the list and its first finding, without remarks about the machine."""
    head, _, rest = text.partition("\n\n")
    finding = re.split(r"\n\n|\n(?= 2 )", rest.lstrip("\n"))[0]
    kept: list[str] = []
    for line in finding.splitlines():
        if re.match(r"\s+but ", line):
            break
        kept.append(line)
    return "\n".join([head, "", *kept])


def verdict(text: str) -> str:
    """Step time, verdict and the table by kind of work."""
    head, _, rest = text.partition("\n\n")
    return f"{head}\n\n{rest.split(chr(10) * 2)[0]}".rstrip()


def change(before: Path, after: Path) -> str:
    """The edit as a unified diff."""
    lines = difflib.unified_diff(
        before.read_text().splitlines(), after.read_text().splitlines(), "train.py", "train.py", "", "", 1, ""
    )
    return "\n".join(lines)


def page(folder: Path, rounds: int, tries: int) -> str:
    """The template with its places `{{name}}` filled."""
    filled: dict[str, str] = {}
    for number, program in enumerate(PROGRAMS):
        shutil.copy(program, folder / "train.py")
        run = f"runs/step{number}"
        record(folder, run, tries)
        filled[f"finding{number}"] = first_finding(printed([*VERB, "bottlenecks", run], folder))
        if number:
            filled[f"change{number}"] = change(PROGRAMS[number - 1], program)
            before = f"runs/step{number - 1}"
            filled[f"diff{number}"] = verdict(printed([*VERB, "diff", before, run, "--by", "kind"], folder))
    filled["whole"] = verdict(printed([*VERB, "diff", "runs/step0", "runs/step5", "--by", "line"], folder))
    times = step_times_ms(folder, rounds)
    for number, time_ms in enumerate(times):
        filled[f"time{number}"] = f"{time_ms:.1f}"
        filled[f"ratio{number}"] = f"{times[0] / time_ms:.1f}"
    text = (DOCS / "tutorial.md.in").read_text()
    return re.sub(r"\{\{(\w+)\}\}", lambda place: filled[place[1]], text)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5, help="timed rounds of all programs")
    parser.add_argument(
        "--tries", type=int, default=1, help="recordings of each program; the quietest is kept"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        text = page(Path(folder), options.rounds, options.tries)
    (DOCS / "tutorial.md").write_text(text)


if __name__ == "__main__":
    main()
