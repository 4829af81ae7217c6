"""A stand-in for TorchNeuron's profiling module and for AWS's neuron-explorer; both record how they were called.

Used only to test the capture path without hardware: the module leaves files named as the real one's, the program writes
the made-up session as Parquet, with the framework rows of the ops that were really recorded.
"""

from __future__ import annotations

import json
import sys
import textwrap
import threading
from enum import Enum
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest


class ProfileMode(Enum):
    """As documented."""

    DEVICE = "device"
    RUNTIME = "runtime"
    CPU_UTIL = "cpu_util"
    HOST_MEMORY = "host_memory"


def install(monkeypatch: pytest.MonkeyPatch, *, artefacts: bool = True) -> dict[str, Any]:
    """Put the fake where `import torch_neuronx.profiling` finds it. Returns what it was called with."""
    import torch
    from torch._C._profiler import _ExperimentalConfig

    calls: dict[str, Any] = {"exported": 0, "synchronized": 0}

    class NeuronConfig(_ExperimentalConfig):  # type: ignore[misc]
        def __init__(self, **options: Any) -> None:
            super().__init__()
            calls["options"] = options
            self.options = options

    class NeuronProfiler:
        def __init__(self, config: NeuronConfig) -> None:
            calls["config"] = config
            self._config = config

        def export_trace(self, profiler: Any) -> None:
            calls["exported"] += 1
            calls["profiler"] = profiler
            if not artefacts:
                return
            folder = Path(self._config.options["profile_output_dir"]) / "i-made-up_pid_500" / "20260101"
            folder.mkdir(parents=True)
            for name in ("profile_nc_0_session_0.ntff", "neff_abc_vnc_0.neff", "ntrace.pb", "trace_info.pb"):
                (folder / name).write_bytes(b"made up")
            rows = profiler.profiler.kineto_results.trace_activities()
            ops = [
                {"name": row.name(), "start": row.timestamp(), "duration": row.duration()}
                for row in rows
                if row.type() == "cpu_op"
            ]
            (folder / "ops.json").write_text(json.dumps({"ops": ops, "thread": threading.get_native_id()}))

    package, profiling = ModuleType("torch_neuronx"), ModuleType("torch_neuronx.profiling")
    package.__path__ = []  # type: ignore[attr-defined]
    profiling.NeuronConfig = NeuronConfig  # type: ignore[attr-defined]
    profiling.NeuronProfiler = NeuronProfiler  # type: ignore[attr-defined]
    profiling.ProfileMode = ProfileMode  # type: ignore[attr-defined]
    from importlib.machinery import ModuleSpec

    package.__spec__ = ModuleSpec("torch_neuronx", None, is_package=True)
    profiling.__spec__ = ModuleSpec("torch_neuronx.profiling", None)
    monkeypatch.setitem(sys.modules, "torch_neuronx", package)
    monkeypatch.setitem(sys.modules, "torch_neuronx.profiling", profiling)

    device = ModuleType("torch.neuron")

    def synchronize() -> None:
        calls["synchronized"] += 1

    device.synchronize = synchronize  # type: ignore[attr-defined]
    monkeypatch.setattr(torch, "neuron", device, raising=False)
    return calls


def install_program(folder: Path, monkeypatch: pytest.MonkeyPatch, *, fails: bool = False) -> Path:
    """A program that stands for AWS's neuron-explorer. It writes its arguments to `called.json` beside itself."""
    program = folder / "neuron-explorer"
    root = Path(__file__).resolve().parents[2]
    program.write_text(
        textwrap.dedent(
            f"""\
            #!{sys.executable}
            import json, pathlib, sys
            sys.path.insert(0, {str(root)!r})
            pathlib.Path({str(folder / "called.json")!r}).write_text(json.dumps(sys.argv[1:]))
            if {fails!r}:
                print("unsupported NTFF version 129")
                sys.exit(3)
            from tests.neuron_fixture.fake_torch_neuronx import write_profile
            arguments = dict(zip(sys.argv[2::1], sys.argv[3::1]))
            write_profile(pathlib.Path(arguments["-d"]), pathlib.Path(arguments["--data-path"]), arguments["--display-name"])
            """
        )
    )
    program.chmod(0o755)
    monkeypatch.setenv("AWS_NEURON_EXPLORER", str(program))
    return program


def write_profile(artefacts: Path, output: Path, name: str) -> None:
    """Parquet for one process: framework rows of the recorded ops, each `aten::mm` launching one execution of the story."""
    from tests.neuron_fixture.builder import ProfileBuilder
    from tests.neuron_fixture.story import DEVICE_EPOCH, plant

    (found,) = artefacts.rglob("ops.json")
    recorded = json.loads(found.read_text())
    system = ProfileBuilder(name)
    story = plant(7, f"{name}_nc_0")
    length = story.window[1] - story.window[0]

    def event(source: str, text: str, start: int, duration: int, thread: int, **more: Any) -> None:
        system.timed(
            "SystemProfileEvents", start, duration, id=system.next_id("SystemProfileEvents"), name=text,
            trace_event_source=source, instance_id="i-made-up", process_id=500, thread_id=thread, **more,
        )  # fmt: skip

    first = None
    for number, op in enumerate(recorded["ops"]):
        flow = [f"f{number}"] if op["name"] == "aten::mm" else None
        event("framework", op["name"], op["start"], op["duration"], recorded["thread"], flow_id=flow)
        if flow and first is None:
            first = op
            start = op["start"] + 1000
            event(
                "neuron_rt", "nrt_execute", op["start"] + 100, 500, recorded["thread"], flow_id=[*flow, "x"]
            )
            event("neuron_hw", "nc_exec_running", start, length, 0, nc_idx=0, flow_id=["x"])
            event(
                "neuron_hw", "timestamp_sync_point", start, 0, 0, nc_idx=0,
                extra_attributes_json=json.dumps({"nc_timestamp_ns": DEVICE_EPOCH}),
            )  # fmt: skip
    system.row(
        "DeviceProfileList", device_profile_name=f"{name}_nc_0", instance_id="i-made-up", process_id=500, nc_id=0, session_id=0
    )  # fmt: skip
    system.write(output / "profiles" / "global")
    story.builder.write(output / "profiles" / "global")
