"""Sums by line in arrays are those of a join with event_lines."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from explorer.analysis.neuron import line_sums
from explorer.analysis.neuron.line_sums import LineSums
from explorer.analysis.run import open_run
from explorer.collectors.neuron.session_import import import_session
from tests.neuron_fixture.story import write_story


@pytest.mark.parametrize("most_empty", [line_sums.MOST_EMPTY, 0], ids=["table", "search"])
def test_the_same_sums_as_a_join(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most_empty: int) -> None:
    monkeypatch.setattr(line_sums, "MOST_EMPTY", most_empty)
    write_story(tmp_path / "source")
    run = open_run(import_session(tmp_path / "source", tmp_path / "run").directory)
    shared = run.engine.sql("SELECT count(DISTINCT event_id) AS n FROM event_sites").rows()[0]["n"]
    assert shared > 0
    table = run.engine.sql("SELECT event_id, duration_ns::DOUBLE AS ns FROM events").arrow()
    # Every event once, and the first of them once more.
    events = np.r_[table.column("event_id").to_numpy(), table.column("event_id").to_numpy()[:50]]
    weights = np.r_[table.column("ns").to_numpy(), table.column("ns").to_numpy()[:50]]
    expected: dict[int, float] = {}
    rows = run.engine.sql("SELECT event_id, site_id, share FROM event_lines").rows()
    for event, weight in zip(events.tolist(), weights.tolist()):
        for row in rows:
            if row["event_id"] == event:
                expected[row["site_id"]] = expected.get(row["site_id"], 0.0) + weight * row["share"]
    found = LineSums(run.engine, 0).by_site(events, weights)
    assert found == pytest.approx(expected)
    assert LineSums(run.engine, 0).by_site(events[:0], weights[:0]) == {}
    assert LineSums(run.engine, 9).by_site(events, weights) == {}
