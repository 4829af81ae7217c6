"""The pytest plugin in a pytest of its own, on a real program."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

PROGRAM = """
import torch

def work(x, slow):
    y = x @ x
    if slow:
        rows = []
        for i in range(x.shape[0]):
            rows.append(y[i] * 2.0)
        y = torch.stack(rows)
    return y.sum()

def record(profile, slow):
    x = torch.randn(96, 96)
    with profile:
        for _ in range(12):
            work(x, slow)
            profile.step()

def test_fast(profile):
    record(profile, False)
    profile.assert_no("row_loop")
    assert len(profile.run.steps()) >= 12

def test_slow(profile):
    record(profile, True)
    profile.assert_no("row_loop")

def test_wrong_name(profile):
    record(profile, False)
    profile.assert_no("row_lop")

def test_against_itself(profile):
    record(profile, False)
    profile.assert_step_ms_ratio(profile.run.directory, 1.05)

def test_limit(profile):
    record(profile, False)
    profile.assert_step_ms(0.0001)

def test_nothing_recorded(profile):
    profile.run
"""


@pytest.mark.capture
def test_budgets_on_a_real_program(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    (tmp_path / "test_program.py").write_text(PROGRAM)
    installed = any(entry.value == "explorer.pytest_plugin" for entry in entry_points(group="pytest11"))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_program.py"]
    if not installed:
        command[4:4] = ["-p", "explorer.pytest_plugin"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTEST_ADDOPTS": ""}
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, timeout=240, env=environment, check=False
    )
    assert "4 failed, 2 passed" in done.stdout, done.stdout
    assert "row_loop (" in done.stdout
    assert "test_program.py:8" in done.stdout or "test_program.py:9" in done.stdout
    assert "there is no rule 'row_lop'" in done.stdout
    assert "allowed 0.0001 ms" in done.stdout
    assert "nothing was recorded" in done.stdout
