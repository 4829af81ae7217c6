"""Real traces as runs, imported once per test session."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

from explorer.analysis.run import Run, open_run
from explorer.collectors.import_trace import import_trace
from explorer.collectors.options import ImportOptions
from tests.traces import trace

_FOLDER = tempfile.TemporaryDirectory(prefix="neuron-explorer-tests-")


@cache
def imported(*names: str) -> Run:
    """One run of these traces, one rank each. Skips the test where a trace is not there."""
    directory = Path(_FOLDER.name) / names[0].replace("/", "__")
    report = import_trace([trace(name) for name in names], directory, options=_options(names))
    return open_run(report.directory)


def _options(names: tuple[str, ...]) -> ImportOptions:
    """A file of merged ranks stays whole, as the peers read it."""
    return ImportOptions(rank=0) if len(names) == 1 and "merged" in names[0] else ImportOptions()
