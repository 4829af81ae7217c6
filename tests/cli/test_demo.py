"""demo records the real program and finds what was left in it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from explorer.cli.demo import demo_program

pytest.importorskip("torch")
ROOT = Path(__file__).resolve().parents[2]


def test_the_program_is_the_example() -> None:
    assert demo_program().resolve() == ROOT / "examples" / "train_transformer.py"


@pytest.mark.capture
def test_demo_names_the_planted_lines(tmp_path: Path) -> None:
    call = [
        sys.executable,
        "-m",
        "explorer.cli.main",
        "demo",
        "-o",
        str(tmp_path / "run"),
        "--steps",
        "12",
        "--json",
    ]
    done = subprocess.run(call, capture_output=True, text=True, timeout=200, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["run"] == str(tmp_path / "run")
    assert document["steps"] >= 10
    lines = (ROOT / "examples" / "train_transformer.py").read_text().splitlines()
    named = {
        lines[line["line"] - 1].strip()
        for finding in document["findings"]
        for line in finding["lines"]
        if line["file"] == "examples/train_transformer.py"
    }
    assert any("VOCABULARY.index" in code for code in named), named
    assert any(code.startswith("torch.save(") for code in named), named
    assert all(
        line["code"] == lines[line["line"] - 1].strip()
        for finding in document["findings"]
        for line in finding["lines"]
    )
