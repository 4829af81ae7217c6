"""Real traces as runs, imported once per test session."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

from explorer.analysis.run import Run, open_run
from explorer.collectors.import_trace import import_trace
from tests.traces import trace

_FOLDER = tempfile.TemporaryDirectory(prefix="neuron-explorer-tests-")


@cache
def imported(*names: str) -> Run:
    """One run of these traces, one rank each. Skips the test where a trace is not there."""
    directory = Path(_FOLDER.name) / names[0].replace("/", "__")
    report = import_trace([trace(name) for name in names], directory)
    return open_run(report.directory)
