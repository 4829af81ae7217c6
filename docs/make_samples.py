"""Print again what pages show after `$ neuron-explorer ...`: each command is run and its output put into the page.

python docs/make_samples.py RUN     RUN is a recording of `neuron-explorer demo`; the pages call it runs/demo

A sample that ended with `...` is cut at the same length again. That of `doctor` stays: it speaks of the machine it runs on.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

DOCS = Path(__file__).resolve().parent
PROGRAM = str(Path(sys.executable).with_name("neuron-explorer"))
SAMPLE = re.compile(
    r"^    \$ neuron-explorer (?P<call>.+)\n(?P<shown>(?:(?:    .*)?\n)*?)(?=\n?(?:\S|\Z))", re.MULTILINE
)
MARK = "..."


def printed(call: str, folder: Path) -> list[str]:
    """The lines that a command prints, remarks included, 96 columns wide."""
    environment = {
        **os.environ,
        "COLUMNS": "96",
        "NO_COLOR": "1",
        "NEURON_EXPLORER_CACHE": str(folder / "cache"),
    }
    done = subprocess.run(
        f"{PROGRAM} {call}", shell=True, cwd=folder, env=environment, text=True, check=False,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    if done.returncode:
        sys.exit(f"neuron-explorer {call}\n{done.stdout}")
    return done.stdout.rstrip("\n").splitlines()


def renewed(text: str, folder: Path) -> str:
    """A page with the outputs of its samples as they are today."""

    def sample(found: re.Match[str]) -> str:
        if found["call"].startswith("doctor"):
            return found[0]
        old = [line.removeprefix("    ") for line in found["shown"].rstrip("\n").splitlines()]
        lines = printed(found["call"], folder)
        if old and old[-1] == MARK and len(lines) >= len(old):
            lines = [*lines[: len(old) - 1], MARK]
        body = "".join(f"    {line}".rstrip() + "\n" for line in lines)
        return f"    $ neuron-explorer {found['call']}\n{body}"

    return SAMPLE.sub(sample, text)


def main() -> None:
    run = Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        shutil.copytree(run, folder / "runs" / "demo")
        for page in sorted(DOCS.rglob("*.md")):
            text = page.read_text()
            if (new := renewed(text, folder)) != text:
                page.write_text(new)
                print(page.relative_to(DOCS))


if __name__ == "__main__":
    main()
