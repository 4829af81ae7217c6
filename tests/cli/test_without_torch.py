"""Without torch everything that reads works, and what records says what to install."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.small_run import write_small_run

BLOCKED = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "torch":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Absent())
"""
MAIN = BLOCKED + "from explorer.cli.main import main; sys.exit(main(sys.argv[1:]))"


def without_torch(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=120, check=False
    )


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(write_small_run(tmp_path_factory.mktemp("small") / "run"))


@pytest.mark.parametrize("verb", ["bottlenecks", "lines", "summary", "critical-path"])
def test_reading_works(verb: str, run: str) -> None:
    done = without_torch(MAIN, verb, run, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["run"] == run


def test_doctor_says_so() -> None:
    done = without_torch(MAIN, "doctor", "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    (torch,) = [check for check in document["checks"] if check["name"] == "torch"]
    assert torch["state"] == "no"
    assert "neuron-explorer[capture]" in torch["remedy"]
    assert document["not_captured"] == [{"what": "Anything", "why": "torch is not installed"}]


def test_demo_says_what_to_install() -> None:
    done = without_torch(MAIN, "demo")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert 'pip install "neuron-explorer[capture]"' in done.stderr


def test_neuron_profile_says_what_to_install(tmp_path: Path) -> None:
    code = (
        BLOCKED
        + f"""
from explorer import neuron_profile
from explorer.model.errors import MissingExtra
try:
    with neuron_profile({str(tmp_path / "run")!r}):
        pass
except MissingExtra as error:
    print(error)
"""
    )
    done = without_torch(code)
    assert 'pip install "neuron-explorer[capture]"' in done.stdout, done.stderr
    assert not (tmp_path / "run").exists()
