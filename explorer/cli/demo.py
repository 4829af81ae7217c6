"""`demo`: record a real training program on this machine and show what it says."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Annotated

import typer

from explorer.cli.options import JsonOption
from explorer.model.errors import InputError, MissingExtra

PROGRAM = "train_transformer.py"


def command(
    output: Annotated[
        str, typer.Option("-o", "--output", metavar="RUN", help="Where the run goes")
    ] = "runs/demo",
    steps: Annotated[int, typer.Option("--steps", min=4, help="Training steps to record")] = 40,
    fixed: Annotated[bool, typer.Option("--fixed", help="Train with the slow habits repaired")] = False,
    json: JsonOption = False,
) -> int:
    """Record a real training program on this machine and print what makes it slow, line by line.

    The program is examples/train_transformer.py: a small transformer with a DataLoader, AdamW and an evaluation, with
    common slow habits left in. It is recorded like any program of yours, by neuron-explorer record.
    """
    from explorer.cli.bottlenecks import print_findings
    from explorer.cli.machine import installed
    from explorer.cli.output import note, print_json
    from explorer.cli.record import free_directory

    if not installed("torch"):
        raise MissingExtra("torch", "capture", "Recording")
    program = demo_program()
    arguments = [str(program), "--steps", str(steps), *(["--fixed"] if fixed else [])]
    target = free_directory(output)
    note(f"Recording: python {' '.join(arguments)}")
    directory = record(target, arguments)
    from explorer.analysis.run import open_run

    with open_run(directory) as run:
        findings = run.bottlenecks()
    if json:
        print_json(findings.to_dict())
        return 0
    print()
    print_findings(findings, limit=6, given=directory)
    print()
    for what, verb in (
        ("Terminal UI:", directory),
        ("Source with costs:", f"source {directory} {PROGRAM}"),
        ("The same repaired:", "demo --fixed -o runs/demo-fixed"),
    ):
        print(f"{what:<18} {_start()} {verb}")
    return 0


def demo_program() -> Path:
    """The program: of the checkout this package runs from, else a copy of the installed one in ./neuron-explorer-demo.

    Raises InputError where neither exists.
    """
    import explorer

    checkout = Path(explorer.__file__).resolve().parents[1] / "examples" / PROGRAM
    if checkout.is_file():
        here = Path.cwd()
        return checkout.relative_to(here) if checkout.is_relative_to(here) else checkout
    installed = Path(sysconfig.get_path("data")) / "share" / "neuron-explorer" / "examples" / PROGRAM
    if not installed.is_file():
        raise InputError(f"The demo program {PROGRAM} is not installed.", "Run the demo from a checkout.")
    # A program inside the environment's own folders would count as a library; one's own folder is the honest case.
    copy = Path("neuron-explorer-demo") / PROGRAM
    copy.parent.mkdir(exist_ok=True)
    copy.write_bytes(installed.read_bytes())
    return copy


def record(output: str, arguments: list[str]) -> str:
    """Record a Python program with this program's own `record` and return the run's directory.

    Raises InputError where the program fails.
    """
    call = [
        sys.executable,
        "-m",
        "explorer.cli.main",
        "record",
        "-o",
        output,
        "--",
        sys.executable,
        *arguments,
    ]
    done = subprocess.run(call, stderr=subprocess.PIPE, stdout=sys.stderr, text=True, check=False)
    lines = done.stderr.splitlines()
    for line in lines:
        print(line, file=sys.stderr)
    found = next((line.removeprefix("run: ") for line in reversed(lines) if line.startswith("run: ")), None)
    if done.returncode or found is None:
        raise InputError(
            f"The demo program ended with {done.returncode} and left no run.", "See the lines above."
        )
    return found


def _start() -> str:
    """How a shell starts this program: its name where PATH finds ours, else its path."""
    from explorer.cli.machine import programs_on_path

    found = programs_on_path()
    if found and found[0][1] == "ours":
        return "neuron-explorer"
    beside = Path(sys.executable).with_name("neuron-explorer")
    if beside.exists():
        here = Path.cwd()
        return str(beside.relative_to(here) if beside.is_relative_to(here) else beside)
    return f"{sys.executable} -m explorer.cli.main"
