"""Signals that are ignored when `record` begins are ignored by the program, as they are without it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROGRAM = """
import signal
for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
    print(number.name, signal.getsignal(number) is signal.SIG_IGN)
"""


def test_nohup_and_background_jobs_stay_what_they_are(tmp_path: Path) -> None:
    record = [sys.executable, "-m", "explorer.cli.main", "record", "-o", "run", "--"]
    ignoring = ["sh", "-c", 'trap "" HUP INT; exec "$@"', "sh"]
    done = subprocess.run(
        [*ignoring, *record, sys.executable, "-c", PROGRAM],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
        timeout=120,
    )
    assert (done.returncode, done.stdout) == (0, "SIGHUP True\nSIGINT True\nSIGTERM False\n")
