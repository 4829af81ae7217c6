"""The example programs are real: each runs, and repairing the slow habits changes the time, not the training."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"

pytest.importorskip("torch")


def run(program: str, *arguments: str) -> str:
    """Run an example in its own process and return what it printed."""
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / program), *arguments],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_repaired_training_learns_the_same() -> None:
    slow, fixed = (run("train_transformer.py", "--steps", "5", *extra) for extra in ([], ["--fixed"]))
    outcome = re.compile(r"loss \d\.\d+, right \d+%")
    assert outcome.search(slow)
    assert outcome.findall(slow) == outcome.findall(fixed)


def test_convolutional_network() -> None:
    assert "ms a step" in run("train_convnet.py", "--steps", "2", "--batch", "4")


@pytest.mark.parametrize("model", ["llama", "bert"])
def test_hugging_face(model: str) -> None:
    pytest.importorskip("transformers")
    assert run("huggingface_tiny.py", "--model", model, "--steps", "2").startswith(f"{model} on ")


def test_two_processes() -> None:
    assert {line.split(" on ")[0] for line in run("train_ddp.py", "--steps", "2").splitlines()} == {
        "rank 0",
        "rank 1",
    }


def test_compile_example_eager() -> None:
    assert "ms a step" in run("compile_model.py", "--eager", "--steps", "2")


def test_every_example_is_listed() -> None:
    listed = (EXAMPLES / "README.md").read_text()
    assert all(f"`{path.name}`" in listed for path in EXAMPLES.glob("*.py"))
