"""A trace without events becomes a run without files that nobody lists."""

from __future__ import annotations

from pathlib import Path

import pytest

from explorer.collectors.import_trace import import_trace
from explorer.store.verify import verify


@pytest.mark.parametrize("text", ['{"traceEvents":[]}', '{"traceEvents":[],"distributedInfo":{"rank":3}}'])
def test_nothing_is_left_over(text: str, tmp_path: Path) -> None:
    (tmp_path / "empty.json").write_text(text)
    report = import_trace(tmp_path / "empty.json", tmp_path / "run")
    assert report.events == 0
    assert verify(report.directory) == []
