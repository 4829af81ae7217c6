"""What `doctor` looks at: Python, torch, accelerator, driver, permissions, recorders, and whose program PATH finds."""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import explorer

SCHEMA = "neuron-explorer/doctor/1"
PROBE_TIMEOUT_S = 120


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the screen: `state` is ok, note (works, with a limit) or no."""

    name: str
    state: str
    found: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class NotCaptured:
    """Something a recording made here will not hold, and why."""

    what: str
    why: str


@dataclass(slots=True)
class Report:
    """Everything `doctor` found."""

    checks: list[Check] = field(default_factory=list)
    not_captured: list[NotCaptured] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """The document of `doctor --json`."""
        return {
            "schema": SCHEMA,
            "checks": [asdict(check) for check in self.checks],
            "not_captured": [asdict(item) for item in self.not_captured],
        }


def examine() -> Report:
    """Look at this machine. Never raises for what it finds; a broken torch or driver is a finding."""
    report = Report()
    torch = probe_torch()
    report.checks.append(_python())
    report.checks.append(_program())
    report.checks.append(_torch(torch))
    report.checks.append(_accelerator(torch))
    report.checks.append(_driver())
    report.checks.append(_ops(torch))
    report.checks.append(_lines())
    report.checks.append(_telemetry())
    if neuron := _neuron():
        report.checks.append(neuron)
    report.checks.append(_permissions())
    report.checks.append(_disk())
    report.checks.append(_trace_reader())
    report.checks.append(_extras())
    report.not_captured = list(_not_captured(torch))
    return report


_PROBE = """
import json, sys, time
start = time.perf_counter()
import torch
found = {"version": torch.__version__, "import_s": time.perf_counter() - start}
found["kineto"] = bool(torch.autograd.kineto_available())
found["activities"] = sorted(str(a).rsplit(".", 1)[-1] for a in torch.profiler.supported_activities())
found["built_for"] = "CUDA " + torch.version.cuda if torch.version.cuda else (
    "ROCm " + torch.version.hip if getattr(torch.version, "hip", None) else "CPU")
found["devices"] = []
accelerator = getattr(torch, "accelerator", None)
if accelerator is not None and accelerator.is_available():
    found["accelerator"] = accelerator.current_accelerator().type
    module = getattr(torch, found["accelerator"], None)
    for index in range(accelerator.device_count()):
        try:
            name = module.get_device_name(index)
        except Exception:
            name = found["accelerator"]
        found["devices"].append(name)
print(json.dumps(found))
"""


def probe_torch() -> dict[str, Any]:
    """What torch says of itself, asked in another process, so that a crash or a hang of a driver stays there.

    Returns {"error": reason} where torch is absent or does not load.
    """
    if not installed("torch"):
        return {"error": "not installed", "absent": True}
    try:
        done = subprocess.run(
            [sys.executable, "-c", _PROBE],
            capture_output=True,
            text=True,
            timeout=PROBE_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return {"error": f"importing it took more than {PROBE_TIMEOUT_S} s"}
    except OSError as error:
        return {"error": f"a second Python could not be started: {error}"}
    lines = done.stdout.strip().splitlines()
    if done.returncode or not lines:
        reason = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        return {"error": f"it does not load: {reason}"}
    found: dict[str, Any] = json.loads(lines[-1])
    return found


def _python() -> Check:
    version = platform.python_version()
    where = sys.prefix if sys.prefix != sys.base_prefix else sys.executable
    return Check("Python", "ok", f"{platform.python_implementation()} {version} ({where})")


def programs_on_path(name: str = "neuron-explorer", path: str | None = None) -> list[tuple[str, str]]:
    """Every program of that name on PATH, first wins, with whose it is: ours, aws or other."""
    found = []
    for folder in (path if path is not None else os.environ.get("PATH", "")).split(os.pathsep):
        candidate = os.path.join(folder or ".", name)
        if os.path.isfile(candidate) and os.access(candidate, os.X_OK):
            found.append((candidate, _owner(candidate)))
    return found


def _owner(program: str) -> str:
    try:
        head = Path(program).read_bytes()[:4096]
    except OSError:
        return "other"
    if b"explorer.cli.main" in head:
        return "ours"
    real = os.path.realpath(program)
    return "aws" if "/aws/" in real or "/neuron/" in real else "other"


def _program() -> Check:
    found = programs_on_path()
    name = "neuron-explorer"
    ours_here = os.path.join(os.path.dirname(sys.executable), name)
    start = ours_here if os.path.exists(ours_here) else f"{sys.executable} -m explorer.cli.main"
    version = f"{explorer.__version__}"
    if not found:
        return Check(name, "note", f"{version}; not on PATH", f"Start it as {start}")
    first, owner = found[0]
    if owner == "ours":
        others = [path for path, whose in found if whose != "ours"]
        hidden = f"; hides {others[0]}" if others else ""
        return Check(name, "ok", f"{version}, {first}{hidden}")
    whose = (
        "AWS's tool of the same name" if owner == "aws" else "another program of the same name (AWS has one)"
    )
    return Check(name, "note", f"PATH finds {first} first: {whose}", f"Start this one as {start}")


def _torch(torch: dict[str, Any]) -> Check:
    if torch.get("absent"):
        return Check(
            "torch",
            "no",
            "not installed: runs and traces can be read, nothing can be recorded",
            'To record: pip install "neuron-explorer[capture]", or the torch build for your accelerator',
        )
    if "error" in torch:
        return Check("torch", "no", torch["error"], 'Try: python -c "import torch"')
    return Check("torch", "ok", f"{torch['version']}, built for {torch['built_for']}")


def _accelerator(torch: dict[str, Any]) -> Check:
    name = "accelerator"
    if "error" in torch:
        return Check(name, "note", "unknown without torch")
    if "accelerator" not in torch:
        built = "" if torch["built_for"] == "CPU" else f" (it is built for {torch['built_for']})"
        return Check(name, "note", f"torch finds none{built}: programs run, and are recorded, on the CPU")
    kinds = sorted(set(torch["devices"]))
    listed = ", ".join(f"{torch['devices'].count(kind)} x {kind}" for kind in kinds)
    return Check(name, "ok", f"{torch['accelerator']}: {listed}")


def _driver() -> Check:
    found = []
    remedy = ""
    if version := _first_line("/proc/driver/nvidia/version"):
        found.append("NVIDIA " + next((w for w in version.split() if w[:1].isdigit() and "." in w), version))
    if os.path.exists("/dev/kfd"):
        found.append("AMD " + (_first_line("/sys/module/amdgpu/version") or "amdgpu"))
    neuron = sorted(str(path) for path in Path("/dev").glob("neuron[0-9]*"))
    if neuron:
        version = _first_line("/sys/module/neuron/version") or "neuron"
        found.append(f"Neuron {version}, {len(neuron)} devices")
    if os.path.exists("/dev/accel/accel0"):
        found.append("accel (Intel, Habana or TPU)")
    unreadable = [
        path
        for path in ("/dev/kfd", "/dev/nvidiactl", *neuron[:1])
        if os.path.exists(path) and not os.access(path, os.R_OK | os.W_OK)
    ]
    if unreadable:
        remedy = f"{unreadable[0]} may not be opened by this user: add them to its group"
    state = "no" if unreadable else ("ok" if found else "note")
    return Check("driver", state, "; ".join(found) or "no accelerator driver is loaded", remedy)


def _ops(torch: dict[str, Any]) -> Check:
    name = "ops and kernels"
    if "error" in torch:
        return Check(name, "no", "need torch")
    if not torch["kineto"]:
        return Check(
            name,
            "no",
            "this torch was built without its profiler (Kineto)",
            "Install an official torch build",
        )
    return Check(name, "ok", f"torch.profiler: {', '.join(torch['activities'])}")


def line_recorder() -> tuple[str, str]:
    """The line recorder used here and its limit, '' where it has none."""
    if hasattr(sys, "monitoring"):
        return "sys.monitoring", ""
    return (
        "sys.settrace",
        "threads started before the recording show no lines (Python 3.12 has no such limit)",
    )


def _lines() -> Check:
    recorder, limit = line_recorder()
    if recorder == "sys.settrace" and sys.gettrace() is not None:
        return Check("source lines", "note", "a debugger or coverage tool holds sys.settrace: no exact lines")
    found = f"{recorder}, exact"
    return Check("source lines", "note" if limit else "ok", f"{found}; {limit}" if limit else found)


def _telemetry() -> Check:
    found = ["process (/proc)" if os.path.exists("/proc/self/stat") else "process (psutil)"]
    missing = ""
    if os.path.exists("/proc/driver/nvidia/version"):
        if installed("pynvml"):
            found.append("NVIDIA (NVML)")
        else:
            missing = 'For GPU power, clocks and memory: pip install "neuron-explorer[capture]"'
    if monitor := _neuron_tool("neuron-monitor"):
        found.append(f"Neuron ({monitor})")
    return Check("telemetry", "note" if missing else "ok", ", ".join(found), missing)


def _neuron() -> Check | None:
    from explorer.cli.machine_neuron import neuron_facts

    facts = neuron_facts()
    if not facts.relevant:
        return None
    remedy = f"Missing: {'; '.join(facts.missing)}" if facts.missing else ""
    return Check(
        "Neuron", "note" if facts.missing else "ok", ", ".join(facts.found) or "not usable yet", remedy
    )


def _neuron_tool(name: str) -> str | None:
    usual = f"/opt/aws/neuron/bin/{name}"
    return shutil.which(name) or (usual if os.path.exists(usual) else None)


def _permissions() -> Check:
    found = []
    if paranoid := _first_line("/proc/sys/kernel/perf_event_paranoid"):
        found.append(f"perf_event_paranoid {paranoid}")
    params = _read("/proc/driver/nvidia/params")
    if "RmProfilingAdminOnly: 1" in params:
        found.append("GPU hardware counters are for root only (kernels and copies are not affected)")
    if scope := _first_line("/proc/sys/kernel/yama/ptrace_scope"):
        found.append(f"ptrace_scope {scope}")
    found.append("root" if hasattr(os, "geteuid") and os.geteuid() == 0 else "not root, not needed")
    return Check("permissions", "ok", ", ".join(found))


def _disk() -> Check:
    here = os.getcwd()
    free = shutil.disk_usage(here).free / 2**30
    if not os.access(here, os.W_OK):
        return Check(
            "disk", "no", f"{here} cannot be written", "Give another directory: neuron-explorer record -o DIR"
        )
    state = "ok" if free >= 1 else "note"
    return Check("disk", state, f"{free:.1f} GiB free in {here}")


def _trace_reader() -> Check:
    from explorer.collectors.kineto.compiled import SETTING, compiled, compiled_scratch

    name = "trace reader"
    if compiled() is not None:
        if compiled_scratch() is not None:
            return Check(name, "ok", "compiled")
        what = "compiled, without what bounds the memory of linking (Linux only): it takes 160 bytes a row"
        return Check(name, "note", what)
    if os.environ.get(SETTING):
        return Check(name, "note", f"not the compiled one, as {SETTING} is set: imports take longer")
    return Check(
        name,
        "note",
        "not compiled: imports of Kineto traces take longer, and give the same",
        "Install a C compiler, then neuron-explorer again",
    )


_EXTRAS = {
    "mcp": "mcp",
    "distributed": "distributed",
    "cloud": "s3fs",
    "zstd": "zstandard",
}


def _extras() -> Check:
    have: list[str] = []
    lack: list[str] = []
    for extra, package in _EXTRAS.items():
        (have if installed(package) else lack).append(extra)
    found = f"installed: {', '.join(have) or 'none'}"
    remedy = f'Absent: {", ".join(lack)} (pip install "neuron-explorer[{lack[0]}]")' if lack else ""
    return Check("extras", "ok", found, remedy)


def installed(package: str) -> bool:
    """Whether a package can be imported, without importing it."""
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:
        return False


def _not_captured(torch: dict[str, Any]) -> Iterable[NotCaptured]:
    if "error" in torch:
        yield NotCaptured("Anything", f"torch is {torch['error']}" if torch.get("absent") else torch["error"])
        return
    if "accelerator" not in torch:
        build = " (this torch is a CPU build)" if torch["built_for"] == "CPU" else ""
        yield NotCaptured("Device kernels, copies, device memory", f"torch finds no accelerator{build}")
    elif len(torch["activities"]) < 2:
        yield NotCaptured(
            "Device kernels", f"this torch's profiler has no {torch['accelerator'].upper()} activity"
        )
    if line_recorder()[1]:
        yield NotCaptured(
            "Lines of threads that are already running", "sys.settrace reaches new threads only"
        )
    yield NotCaptured(
        "Ops of DataLoader worker processes", "their lines and fetches are recorded, their ops are not"
    )
    if not os.path.exists("/sys/bus/event_source/devices/cpu"):
        yield NotCaptured("CPU hardware counters", "this machine exposes none (no PMU)")
    elif int(_first_line("/proc/sys/kernel/perf_event_paranoid") or 0) > 2:
        yield NotCaptured("CPU hardware counters", "perf_event_paranoid is above 2")


def _read(path: str) -> str:
    try:
        return Path(path).read_text(errors="replace")
    except OSError:
        return ""


def _first_line(path: str) -> str:
    return (_read(path).strip().splitlines() or [""])[0]
