"""torch.compile: every generated kernel is tied to the lines it computes, and compiling explains itself."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from explorer.store.reader import RunReader

pytest.importorskip("torch")
pytestmark = [
    pytest.mark.capture,
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("g++") is None, reason="Inductor needs a C++ compiler"),
]

PROGRAM = """\
import sys
import torch
from explorer import neuron_profile

def body(x, w):
    h = torch.sigmoid(x) * 2
    h = h @ w
    return torch.tanh(h) + 1

def early(x):
    return torch.exp(x) * 3

w = torch.ones(8, 8, requires_grad=True)
if "warm" in sys.argv:
    before = torch.compile(early)
    before(torch.ones(8, 8))
with neuron_profile(sys.argv[1]) as prof:
    if "warm" in sys.argv:
        before(torch.ones(8, 8))
    compiled = torch.compile(body)
    for rows in (4, 4, 6):
        x = torch.ones(rows, 8)
        loss = compiled(x, w).sum()
        loss.backward()
        prof.step()
    def broken(x):
        y = x + 1
        print("out")
        return y * 2
    torch.compile(broken)(x)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("compiled")


@pytest.fixture(scope="module", params=["run", "warm"])
def run(folder: Path, request: pytest.FixtureRequest) -> RunReader:
    """The first one compiles; the second one takes its graphs from the cache, and has compiled before recording began."""
    directory = folder / request.param
    (folder / "program.py").write_text(PROGRAM)
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "TORCHINDUCTOR_CACHE_DIR": str(folder / "cache"),
        "PYTHONPATH": str(Path(__file__).resolve().parents[3]),
    }
    done = subprocess.run(
        [sys.executable, str(folder / "program.py"), str(directory), request.param],
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
        env=environment,
    )
    assert done.returncode == 0, done.stderr
    return RunReader(directory)


def test_kernels_have_the_lines_they_compute(run: RunReader) -> None:
    sites = {row["site_id"]: row for row in run.read("sites").to_pylist()}
    shares: dict[int, dict[int, float]] = {}
    for row in run.read("event_sites").to_pylist():
        if row["role"] == "responsible":
            shares.setdefault(row["event_id"], {})[sites[row["site_id"]]["line"]] = row["share"]
    lines: dict[tuple[str, str], set[frozenset[int]]] = {}
    kernels = [
        event
        for event in run.read("events").to_pylist()
        if event["attribution"] == "compiled"
        and ("cpp_fused" in event["name"] or event["name"] == "aten::mm")
    ]
    for event in kernels:
        several = shares.get(event["event_id"])
        assert event["precision"] == ("shared" if several else "exact")
        if several:
            assert sum(several.values()) == pytest.approx(1)
            assert sites[event["site_id"]]["line"] in several
        name = event["name"].split("cpp_")[-1]
        found = frozenset(several or {sites[event["site_id"]]["line"]})
        lines.setdefault((name, event["phase"]), set()).add(found)
    assert lines[("aten::mm", "forward")] == {frozenset({7})}
    assert lines[("aten::mm", "backward")] == {frozenset({7})}
    forward = {
        line for (name, phase), found in lines.items() for one in found for line in one if phase == "forward"
    }
    assert forward >= {6, 7, 8}
    functions = {
        row["function"]
        for row in sites.values()
        if row["file"].endswith("program.py") and row["line"] in (6, 7, 8)
    }
    assert functions == {"body"}
    # Guards, wrappers and helpers that the compiler generates are nobody's source.
    user_files = {os.path.basename(row["file"]) for row in sites.values() if row["is_user"]}
    assert user_files == {"program.py"}


def test_graphs_compiled_before_recording_are_known_by_their_function_and_their_kernels(
    run: RunReader,
) -> None:
    if not run.location.root.endswith("warm"):
        pytest.skip("this run compiled everything itself")
    sites = {row["site_id"]: row for row in run.read("sites").to_pylist()}
    early = next(at for at, text in enumerate(PROGRAM.splitlines(), 1) if text.startswith("def early"))
    calls = [e for e in run.read("events").to_pylist() if "kernels" in (e["attributes"] or "")]
    assert [(sites[e["site_id"]]["line"], e["precision"]) for e in calls] == [(early, "coarse")]
    assert [name.startswith("cpp_fused_") for name in json.loads(calls[0]["attributes"])["kernels"]] == [True]


def test_every_step_is_compiled_work_from_the_first_on(run: RunReader) -> None:
    steps = {e["step"] for e in run.read("events").to_pylist() if e["attribution"] == "compiled"}
    assert steps >= {0, 1, 2}


def test_compilations_recompilations_and_breaks_are_rows(run: RunReader) -> None:
    events = [e for e in run.read("events").to_pylist() if e["category"] == "compile"]
    sites = {row["site_id"]: row for row in run.read("sites").to_pylist()}
    facts = {e["name"]: json.loads(e["attributes"]) for e in events}
    assert "compile body" in facts
    assert "size mismatch" in facts["recompile body"]["recompile_reason"]
    break_event = next(e for e in events if e["name"] == "graph break")
    line = next(at for at, text in enumerate(PROGRAM.splitlines(), 1) if 'print("out")' in text)
    assert sites[break_event["site_id"]]["line"] == line
    assert all(e["duration_ns"] > 0 for e in events if e["name"] != "graph break")
