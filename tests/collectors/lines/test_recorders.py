"""Both line recorders agree with the interpreter at every probe, on every Python that is installed here."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CHECK = Path(__file__).with_name("check_recorder.py")


def interpreter(version: str) -> str:
    """A Python of this version; skips the test where there is none."""
    if sys.version_info[:2] == tuple(int(part) for part in version.split(".")):
        return sys.executable
    candidates = [shutil.which(f"python{version}")]
    candidates += [str(p) for p in Path.home().glob(f".pyenv/versions/{version}.*/bin/python")]
    candidates += [
        str(p) for p in Path.home().glob(f".local/share/uv/python/cpython-{version}*/bin/python{version}")
    ]
    for candidate in candidates:
        if candidate is None:
            continue
        works = subprocess.run([candidate, "-c", "pass"], capture_output=True, check=False, timeout=30)
        if works.returncode == 0:
            return candidate
    pytest.skip(f"Python {version} is not installed")


@pytest.mark.parametrize(
    ("version", "method"),
    [
        ("3.11", "settrace"),
        ("3.12", "settrace"),
        ("3.12", "monitoring"),
        ("3.13", "settrace"),
        ("3.13", "monitoring"),
        ("3.14", "monitoring"),
    ],
)
def test_every_probe_agrees_with_the_interpreter(version: str, method: str) -> None:
    done = subprocess.run(
        [interpreter(version), str(CHECK), method], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["method"] == f"sys.{method}"
    assert result["wrong"] == []
    assert result["probes"] > 200


@pytest.mark.parametrize(
    ("version", "method"), [("3.11", "settrace"), ("3.12", "monitoring"), ("3.13", "monitoring")]
)
def test_recording_rests_when_it_has_taken_its_share(version: str, method: str) -> None:
    done = subprocess.run(
        [interpreter(version), str(CHECK.with_name("check_back_off.py")), method],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["switched_off"] == 1
    assert result["refused"]
    assert result["taken_up"]
    assert result["pinned"]
    # Under settrace the rest ended with the function that was hot; under monitoring all is lost until it is taken up.
    assert result["known_afterwards"] == (method == "settrace")
    assert result["after"] > 0
    assert 0 < result["looping"] < result["made"] / 3
