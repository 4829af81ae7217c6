"""prof.summary() in the loop."""

from __future__ import annotations

from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from explorer import neuron_profile, open_run  # noqa: E402


@pytest.mark.capture
def test_steps_are_counted_while_the_program_runs(tmp_path: Path) -> None:
    profile = neuron_profile(tmp_path / "run")
    assert str(profile.summary()) == "no complete step recorded yet"
    x = torch.randn(32, 32)
    seen = []
    with profile as prof:
        for _ in range(8):
            (x @ x).sum()
            prof.step()
            seen.append(prof.summary().steps)
    after = prof.summary()
    assert seen == sorted(seen)
    assert after.steps >= 6
    assert 0 < after.shortest_step_ns <= after.median_step_ns <= after.longest_step_ns
    assert not after.recording
    complete = [row for row in open_run(prof.directory).steps() if row["complete"]]
    assert after.steps == len(complete)
    assert after.directory == prof.directory
    assert "steps, median" in str(after)
