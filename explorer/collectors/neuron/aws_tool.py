"""AWS's neuron-explorer, which alone reads raw device traces: found by its place, never ourselves; run to make Parquet."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

PROGRAM = "neuron-explorer"
VARIABLE = "AWS_NEURON_EXPLORER"
"""Names AWS's program where it lies elsewhere."""

USUAL_PLACE = f"/opt/aws/neuron/bin/{PROGRAM}"
OUR_MARK = b"explorer.cli.main"
"""Stands in the start script that pip makes for this program."""

TIMEOUT_S = 3600


@dataclass(frozen=True)
class Processing:
    """How processing ended. `command` is for people to repeat it."""

    command: tuple[str, ...]
    ok: bool
    message: str = ""


def is_ours(program: str) -> bool:
    """Whether a program of the shared name is this one."""
    try:
        with open(program, "rb") as file:
            return OUR_MARK in file.read(65_536)
    except OSError:
        return False


def find_aws_explorer(path: str | None = None) -> str | None:
    """AWS's program: $AWS_NEURON_EXPLORER, its usual place, else the first on PATH that is not ours; None without one."""
    folders = (os.environ.get("PATH", "") if path is None else path).split(os.pathsep)
    for candidate in (
        os.environ.get(VARIABLE),
        USUAL_PLACE,
        *(os.path.join(f, PROGRAM) for f in folders if f),
    ):
        if (
            candidate
            and os.path.isfile(candidate)
            and os.access(candidate, os.X_OK)
            and not is_ours(candidate)
        ):
            return candidate
    return None


def process(
    program: str, artefacts: str, output: str, name: str, *, timeout_s: float = TIMEOUT_S
) -> Processing:
    """Make Parquet of raw artefacts: `view -d DIR --ingest-only --display-name NAME --data-path OUT`.

    Its output goes to `OUT/processing.log`. Never raises: a failure is in the result.
    """
    command = (
        program,
        "view",
        "-d",
        artefacts,
        "--ingest-only",
        "--display-name",
        name,
        "--data-path",
        output,
    )
    log = Path(output) / "processing.log"
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        with open(log, "wb") as file:
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                timeout=timeout_s,
                check=False,
            )
    except subprocess.TimeoutExpired:
        return Processing(command, False, f"it was stopped after {timeout_s:g} s")
    except OSError as error:
        return Processing(command, False, f"it could not be started: {error.strerror or error}")
    if done.returncode:
        return Processing(command, False, f"it ended with {done.returncode}: {_last_line(log)}")
    return Processing(command, True)


def _last_line(log: Path) -> str:
    try:
        lines = log.read_text(errors="replace").strip().splitlines()
    except OSError:
        return "no output"
    return lines[-1][:300] if lines else "no output"
