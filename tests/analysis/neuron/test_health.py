"""Health of a Neuron profile says what to do about missing lines and launches on that hardware."""

from __future__ import annotations

from pathlib import Path

from explorer.analysis.run import open_run
from explorer.collectors.neuron.session_import import import_session
from tests.neuron_fixture.story import write_story


def test_remedies_are_those_of_neuron(tmp_path: Path) -> None:
    write_story(tmp_path / "source")
    run = open_run(import_session(tmp_path / "source", tmp_path / "run").directory)
    remedies = {row["kind"]: row["remedy"] for row in run.health().rows()}
    assert remedies["device_events_without_line"].startswith("Compile with XLA_IR_DEBUG=1")
    assert remedies["unlinked_kernels"].startswith("The run holds device work only: add a system profile")
