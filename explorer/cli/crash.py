"""The report of an unexpected error: a file with everything a maintainer needs, so that the terminal shows one line."""

from __future__ import annotations

import os
import platform
import sys
import tempfile
import time
import traceback
from pathlib import Path

import explorer


def state_folder() -> Path:
    """Where this program keeps its own files: $XDG_STATE_HOME/neuron-explorer, else ~/.local/state/neuron-explorer."""
    base = os.environ.get("XDG_STATE_HOME") or os.path.join(os.path.expanduser("~"), ".local", "state")
    return Path(base) / "neuron-explorer"


def write_crash_report(error: BaseException, arguments: list[str]) -> Path | None:
    """Write the traceback, the call and the versions to a new file; None where no folder can be written."""
    text = "\n".join(
        [
            f"neuron-explorer {explorer.__version__}, Python {sys.version.split()[0]}, {platform.platform()}",
            f"arguments: {arguments!r}",
            "",
            "".join(traceback.format_exception(error)),
        ]
    )
    name = f"crash-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.txt"
    for folder in (state_folder(), Path(tempfile.gettempdir())):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            path = folder / name
            path.write_text(text, encoding="utf-8", errors="backslashreplace")
        except OSError:
            continue
        return path
    return None
