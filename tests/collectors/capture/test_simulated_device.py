"""A simulated "neuron" device (PrivateUse1): its kernels reach the profiler, and each lands on the line that asked for it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from collections import Counter
from pathlib import Path

import pytest

from explorer.store.reader import RunReader

torch = pytest.importorskip("torch")
HERE = Path(__file__).with_name("simulated_device")
pytestmark = [
    pytest.mark.capture,
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("g++") is None, reason="needs a C++ compiler"),
    pytest.mark.skipif(
        not Path(torch.__file__).parent.joinpath("include/kineto/libkineto.h").exists(),
        reason="this torch ships no Kineto headers",
    ),
]


def build(folder: Path) -> None:
    """Compile the activity profiler against the installed torch."""
    root = Path(torch.__file__).parent
    done = subprocess.run(
        [
            *(
                "g++",
                "-O0",
                "-fPIC",
                "-shared",
                "-std=c++20",
                "-DFMT_HEADER_ONLY",
                "-DKINETO_NAMESPACE=libkineto",
            ),
            f"-D_GLIBCXX_USE_CXX11_ABI={int(torch._C._GLIBCXX_USE_CXX11_ABI)}",
            *("-I", sysconfig.get_path("include"), "-I", str(root / "include")),
            *("-I", str(root / "include/torch/csrc/api/include"), "-I", str(root / "include/kineto")),
            str(HERE / "activity_profiler.cpp"),
            *("-o", str(folder / f"activity_profiler{sysconfig.get_config_var('EXT_SUFFIX')}")),
            *("-L", str(root / "lib"), "-ltorch_cpu", "-lc10", f"-Wl,-rpath,{root / 'lib'}"),
        ],
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )
    if done.returncode:
        pytest.skip(f"the profiler plug-in does not compile against this torch: {done.stderr[:300]}")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunReader:
    folder = tmp_path_factory.mktemp("neuron")
    build(folder)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(HERE / "program.py"), str(folder / "run"), str(folder)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(Path(__file__).resolve().parents[3])},
    )
    assert done.returncode == 0, done.stderr
    return RunReader(str(folder / "run"))


def device_events(run: RunReader) -> list[dict]:
    tracks = {row["track_id"]: row for row in run.read("tracks").to_pylist()}
    return [
        {**event, "track": tracks[event["track_id"]]}
        for event in run.read("events").to_pylist()
        if tracks[event["track_id"]]["kind"] == "stream"
    ]


def mark(line: int) -> str:
    return (HERE / "program.py").read_text().splitlines()[line - 1].rpartition("# ")[2]


def test_kernels_and_copies_lie_on_the_devices_streams(run: RunReader) -> None:
    found = device_events(run)
    assert {e["track"]["device_type"] for e in found} == {"neuron"}
    assert {(e["category"], e["track"]["label"]) for e in found} == {
        ("kernel", "neuron:0 stream 0"),
        ("copy", "neuron:0 stream 1"),
    }


def test_every_device_event_has_launch_op_line_and_step(run: RunReader) -> None:
    events = {e["event_id"]: e for e in run.read("events").to_pylist()}
    found = device_events(run)
    assert found
    for event in found:
        assert events[event["launch_id"]]["category"] == "runtime"
        assert events[event["op_id"]]["category"] == "op"
        assert events[event["launch_id"]]["op_id"] == event["op_id"]
        assert (event["attribution"], event["precision"]) == ("flow", "exact")
        assert event["step"] in (0, 1, 2)
        assert event["phase"] is not None


def test_kernels_land_on_the_right_lines(run: RunReader) -> None:
    sites = {row["site_id"]: row for row in run.read("sites").to_pylist()}
    events = {e["event_id"]: e for e in run.read("events").to_pylist()}
    lines: dict[str, Counter] = {}
    for event in device_events(run):
        if event["step"] == 1:
            name = event["name"].removesuffix("_kernel").removeprefix("aten::")
            line = mark(sites[event["site_id"]]["line"])
            lines.setdefault(name, Counter())[(event["phase"], line)] += 1
            assert sites[events[event["op_id"]]["site_id"]] == sites[event["site_id"]]
    assert lines["addmm"] == {("forward", "forward"): 2}
    assert set(lines["memcpy"]) >= {("forward", "upload")} or ("evaluation", "upload") in lines["memcpy"]
    assert lines["relu"] == {("forward", "forward"): 1}
    # The backward pass: charged to the forward lines, though it runs on a C++ thread without Python frames.
    assert lines["threshold_backward"] == {("backward", "forward"): 1}
    assert set(lines["mm"]) == {("backward", "forward")}
    assert ("backward", "scale") in lines["mul"]
    assert ("forward", "scale") in lines["mul"]
    assert set(lines["add_"]) == {("backward", "forward"), ("optimizer", "update")}
