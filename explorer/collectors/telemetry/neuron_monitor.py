"""neuron-monitor: one JSON record a line; a process we start ourselves, or its log.

A record holds values of one period: runtimes are summed, sections with an error of their own are left out and counted, and
identifiers of the host (instance_info) are never kept. Record form: public neuron-monitor user guide.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import shutil
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from explorer.collectors.hidden_thread import HiddenThread
from explorer.collectors.telemetry.sampler import Reading

USUAL_PLACE = "/opt/aws/neuron/bin/neuron-monitor"
"""Not on PATH under sudo or systemd."""

CONFIGURATION: dict[str, Any] = {
    "period": "1s",
    "neuron_runtimes": [
        {
            "tag_filter": ".*",
            "metrics": [
                {"type": kind}
                for kind in (
                    "neuroncore_counters",
                    "memory_used",
                    "neuron_runtime_vcpu_usage",
                    "execution_stats",
                )
            ],
        }
    ],
    "system_metrics": [{"type": kind} for kind in ("vcpu_usage", "memory_info", "neuron_hw_counters")],
}


def find_monitor() -> str | None:
    """Path of neuron-monitor on this machine."""
    for place in (os.environ.get("NEURON_MONITOR"), USUAL_PLACE, shutil.which("neuron-monitor")):
        if place and os.access(place, os.X_OK) and os.path.isfile(place):
            return place
    return None


class NeuronMonitorSampler:
    """Runs neuron-monitor and hands on what it writes. Exits of the process end the stream without noise."""

    name = "neuron_monitor"

    def __init__(self, command: Sequence[str] | None = None) -> None:
        self._command = list(command) if command else None
        self._process: subprocess.Popen[str] | None = None
        self._lines: queue.SimpleQueue[tuple[int, str]] = queue.SimpleQueue()
        self._configuration: str | None = None
        self.errors = 0

    def start(self) -> bool:
        command = self._command
        if command is None:
            path = find_monitor()
            if path is None:
                return False
            handle, self._configuration = tempfile.mkstemp(prefix="neuron-explorer-", suffix=".json")
            with os.fdopen(handle, "w") as file:
                json.dump(CONFIGURATION, file)
            command = [path, "-c", self._configuration]
        try:
            self._process = subprocess.Popen(
                command,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                stdin=subprocess.DEVNULL,
                text=True,
            )
        except OSError:
            self.stop()
            return False
        process = self._process
        HiddenThread(lambda: self._read(process))
        return True

    def _read(self, process: subprocess.Popen[str]) -> None:
        import time

        assert process.stdout is not None
        try:
            for line in process.stdout:
                self._lines.put((time.time_ns(), line))
        except (OSError, ValueError):
            pass

    def sample(self, now_ns: int) -> Sequence[Reading]:
        found: list[Reading] = []
        while True:
            try:
                arrived_ns, line = self._lines.get_nowait()
            except queue.Empty:
                return found
            readings, errors = record_readings(line, arrived_ns)
            found += readings
            self.errors += errors

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(timeout=2)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            if self._process.stdout is not None:
                self._process.stdout.close()
            self._process = None
        if self._configuration is not None:
            with contextlib.suppress(OSError):
                os.unlink(self._configuration)
            self._configuration = None


def record_readings(line: str, timestamp_ns: int) -> tuple[list[Reading], int]:
    """Readings of one record, and how many of its sections report an error or cannot be read."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return [], 1
    if not isinstance(record, dict):
        return [], 1
    state = _Record(timestamp_ns)
    for runtime in _list(record.get("neuron_runtime_data")):
        state.runtime(runtime)
    state.system(_dict(record.get("system_data")))
    return state.readings(), state.errors


class _Record:
    """Sums over the runtimes of one record."""

    def __init__(self, timestamp_ns: int) -> None:
        self.timestamp_ns = timestamp_ns
        self.errors = 0
        # (label, name, unit, device type, device index) -> value
        self._sums: dict[tuple[str, str, str, str, int | None], float] = defaultdict(float)

    def readings(self) -> list[Reading]:
        return [
            Reading(self.timestamp_ns, label, name, value, unit, kind, index)
            for (label, name, unit, kind, index), value in self._sums.items()
        ]

    def _add(self, label: str, name: str, value: Any, unit: str, index: int | None = None) -> None:
        if isinstance(value, int | float) and not isinstance(value, bool):
            kind = "cpu" if index is None else "neuron"
            self._sums[label, name, unit, kind, index] += float(value)

    def _section(self, holder: Mapping[str, Any], name: str) -> dict[str, Any]:
        section = _dict(holder.get(name))
        if section.get("error"):
            self.errors += 1
            return {}
        return section

    def runtime(self, runtime: Any) -> None:
        runtime = _dict(runtime)
        if runtime.get("error"):
            self.errors += 1
        report = _dict(runtime.get("report"))
        for core, values in _dict(
            self._section(report, "neuroncore_counters").get("neuroncores_in_use")
        ).items():
            index = int(core) if str(core).isdigit() else None
            if index is None:
                continue
            values = _dict(values)
            label = f"neuron core {index}"
            self._add(label, "utilization", values.get("neuroncore_utilization"), "percent", index)
            # Real machines write effective_flops where the guide says flops.
            self._add(label, "flops", values.get("effective_flops", values.get("flops")), "flop/s", index)
        self._memory(self._section(report, "memory_used"))
        self._executions(self._section(report, "execution_stats"))
        usage = _dict(self._section(report, "neuron_runtime_vcpu_usage").get("vcpu_usage"))
        for part in ("user", "system"):
            self._add("neuron runtimes", f"vcpu_{part}", usage.get(part), "percent")

    def _memory(self, section: dict[str, Any]) -> None:
        used = _dict(section.get("neuron_runtime_used_bytes"))
        self._add("neuron runtimes", "host_memory", used.get("host"), "bytes")
        self._add("neuron runtimes", "device_memory", used.get("neuron_device"), "bytes")
        breakdown = _dict(_dict(used.get("usage_breakdown")).get("neuroncore_memory_usage"))
        for core, parts in breakdown.items():
            if not str(core).isdigit():
                continue
            index, parts = int(core), _dict(parts)
            for name, value in parts.items():
                self._add(f"neuron core {index}", f"memory_{name}", value, "bytes", index)
            numbers = [v for v in parts.values() if isinstance(v, int | float) and not isinstance(v, bool)]
            self._add(f"neuron core {index}", "memory_used", sum(numbers), "bytes", index)

    def _executions(self, section: dict[str, Any]) -> None:
        for name, value in _dict(section.get("execution_summary")).items():
            self._add("neuron runtimes", f"executions_{name}", value, "count")
        for name, value in _dict(section.get("error_summary")).items():
            self._add("neuron runtimes", f"errors_{name}", value, "count")
        for kind, values in _dict(section.get("latency_stats")).items():
            for name in ("p50", "p99", "p100"):
                value = _dict(values).get(name)
                key = ("neuron runtimes", f"{kind}_{name}", "s", "cpu", None)
                if isinstance(value, int | float):
                    # Percentiles of several runtimes do not add up: the slowest one counts.
                    self._sums[key] = max(self._sums.get(key, 0.0), float(value))

    def system(self, data: dict[str, Any]) -> None:
        memory = self._section(data, "memory_info")
        self._add("machine", "memory_used", memory.get("memory_used_bytes"), "bytes")
        average = _dict(self._section(data, "vcpu_usage").get("average_usage"))
        for part in ("user", "system", "idle", "io_wait"):
            self._add("machine", f"vcpu_{part}", average.get(part), "percent")
        for device in _list(self._section(data, "neuron_hw_counters").get("neuron_devices")):
            device = _dict(device)
            index = device.get("neuron_device_index")
            for name, value in device.items():
                if isinstance(index, int) and "ecc" in name:
                    self._add(f"neuron device {index}", name, value, "count", index)


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def is_monitor_log(head: bytes) -> bool:
    """Whether a file's first bytes are neuron-monitor records."""
    first = head.lstrip().split(b"\n", 1)[0]
    return first.startswith(b"{") and b'"neuron_runtime_data"' in first


def log_records(text: Iterator[str]) -> Iterator[str]:
    """Non-empty lines of a log."""
    return (line for line in text if line.strip())
