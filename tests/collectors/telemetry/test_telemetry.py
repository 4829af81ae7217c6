"""Samplers and their recorder: documented record forms, absence without noise, failures that stay inside."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from explorer.analysis.run import open_run
from explorer.collectors.import_trace import import_trace
from explorer.collectors.telemetry.host import HostSampler
from explorer.collectors.telemetry.neuron_monitor import NeuronMonitorSampler, find_monitor, record_readings
from explorer.collectors.telemetry.neuron_sysfs import NeuronSysfsSampler
from explorer.collectors.telemetry.nvml import NvmlSampler
from explorer.collectors.telemetry.recorder import MAX_READINGS, TelemetryRecorder
from explorer.collectors.telemetry.sampler import Reading
from tests.collectors.telemetry.records import record, runtime


def _values(line: str) -> dict[tuple[str, str], float]:
    readings, _ = record_readings(line, 5)
    assert {reading.timestamp_ns for reading in readings} <= {5}
    return {(reading.label, reading.name): reading.value for reading in readings}


def test_runtimes_of_one_record_are_summed() -> None:
    found = _values(json.dumps(record(runtime(0, 80.0), runtime(1, 40.0))))
    assert found["neuron core 0", "utilization"] == 80.0
    assert found["neuron core 1", "utilization"] == 40.0
    assert found["neuron core 1", "flops"] == 7e9
    assert found["neuron runtimes", "device_memory"] == 4000
    assert found["neuron runtimes", "executions_completed"] == 20
    assert found["neuron runtimes", "errors_numerical"] == 1
    assert found["neuron core 0", "memory_used"] == 2000
    assert found["neuron core 0", "memory_tensors"] == 1000
    # Percentiles do not add up: the slowest runtime counts.
    assert found["neuron runtimes", "total_latency_p50"] == 0.02
    assert found["machine", "memory_used"] == 400
    assert found["neuron device 0", "mem_ecc_corrected"] == 3


def test_two_runtimes_on_one_core_add_up() -> None:
    assert (
        _values(json.dumps(record(runtime(3, 30.0), runtime(3, 25.0))))["neuron core 3", "utilization"]
        == 55.0
    )


def test_the_documented_name_of_flops_works_as_well() -> None:
    assert _values(json.dumps(record(runtime(0, 1.0, flops_name="flops"))))["neuron core 0", "flops"] == 7e9


def test_sections_with_errors_are_counted_and_left_out() -> None:
    readings, errors = record_readings(json.dumps(record(runtime(0, 1.0, error="boom"))), 0)
    assert errors == 2  # memory_used of the runtime, vcpu_usage of the system
    assert not [reading for reading in readings if reading.name == "device_memory"]


def test_no_runtime_attached_is_no_error() -> None:
    readings, errors = record_readings(json.dumps(record()), 0)
    assert {reading.label for reading in readings} == {"machine", "neuron device 0"}
    assert errors == 1


def test_identifiers_of_the_host_are_not_kept() -> None:
    assert "secret" not in repr(record_readings(json.dumps(record(runtime(0, 1.0))), 0))


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    [
                        "neuron_runtime_data",
                        "report",
                        "neuroncore_counters",
                        "neuroncores_in_use",
                        "0",
                        "error",
                        "system_data",
                    ]
                ),
                inner,
                max_size=4,
            )
        ),
        max_leaves=20,
    )
)
def test_any_json_is_survived(value: object) -> None:
    record_readings(json.dumps(value), 0)


def test_a_monitor_process_is_read_and_ended(tmp_path: Path) -> None:
    script = tmp_path / "monitor.py"
    text = json.dumps(record(runtime(0, 42.0)))
    script.write_text(
        f"import time\nprint({text!r}, flush=True)\nprint('not json', flush=True)\ntime.sleep(60)\n"
    )
    sampler = NeuronMonitorSampler([sys.executable, str(script)])
    assert sampler.start()
    process = sampler._process
    assert process is not None
    found: list[Reading] = []
    deadline = time.monotonic() + 20
    while sampler.errors < 2 and time.monotonic() < deadline:
        found += sampler.sample(0)
        time.sleep(0.02)
    sampler.stop()
    assert process.poll() is not None
    assert [r.value for r in found if r.name == "utilization"] == [42.0]
    assert sampler.errors == 2  # the failing section, and the line that is no record


def test_a_monitor_that_cannot_start_is_absent(tmp_path: Path) -> None:
    assert not NeuronMonitorSampler([str(tmp_path / "missing")]).start()


def test_the_monitor_is_found_by_its_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "neuron-monitor"
    program.write_text("#!/bin/sh\n")
    monkeypatch.setenv("NEURON_MONITOR", str(program))
    assert find_monitor() != str(program)  # not executable
    program.chmod(0o755)
    assert find_monitor() == str(program)


def _sysfs(root: Path) -> Path:
    power = root / "neuron0" / "stats" / "power"
    power.mkdir(parents=True)
    (power / "utilization").write_text("POWER_STATUS_VALID,1767225600,10.5,60.25,33.00\n")
    memory = root / "neuron0" / "neuron_core1" / "stats" / "memory_usage" / "device_mem"
    memory.mkdir(parents=True)
    (memory / "present").write_text("4096\n")
    (memory / "peak").write_text("8192\n")
    (root / "neuron10").mkdir()
    return power / "utilization"


def test_sysfs(tmp_path: Path) -> None:
    power = _sysfs(tmp_path)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    sampler = NeuronSysfsSampler(str(tmp_path))
    assert sampler.start()
    found = {(r.label, r.name): (r.value, r.unit) for r in sampler.sample(1)}
    assert found == {
        ("neuron device 0", "power_min"): (10.5, "percent"),
        ("neuron device 0", "power_max"): (60.25, "percent"),
        ("neuron device 0", "power"): (33.0, "percent"),
        ("neuron device 0 core 1", "memory_used"): (4096.0, "bytes"),
        ("neuron device 0 core 1", "memory_peak"): (8192.0, "bytes"),
    }
    # The power line changes once a minute: the same one is not a new value.
    assert {r.name for r in sampler.sample(2)} == {"memory_used", "memory_peak"}
    power.write_text("POWER_STATUS_INVALID,0,0,0,0\n")
    assert {r.name for r in sampler.sample(3)} == {"memory_used", "memory_peak"}
    after = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    assert {path for path in before if before[path] != after[path]} == {power}


def test_no_sysfs_is_absent(tmp_path: Path) -> None:
    assert not NeuronSysfsSampler(str(tmp_path / "none")).start()
    assert not NeuronSysfsSampler(str(tmp_path)).start()


def test_host_values() -> None:
    sampler = HostSampler()
    assert sampler.start()
    first = {r.name: r.value for r in sampler.sample(1_000_000_000)}
    assert first["process.memory"] > 10 << 20
    assert "process.cpu" not in first  # a rate needs two samples
    second = {r.name: r for r in sampler.sample(2_000_000_000)}
    assert second["process.cpu"].unit == "percent"
    assert second["process.cpu"].value >= 0
    assert 0 <= second["machine.memory_used"].value <= 100


class _Planted:
    """A sampler that gives one value a call, and fails at the third."""

    name = "planted"

    def __init__(self) -> None:
        self.calls = 0
        self.stopped = False

    def start(self) -> bool:
        return True

    def sample(self, now_ns: int) -> Sequence[Reading]:
        self.calls += 1
        if self.calls == 3:
            raise RuntimeError("planted")
        return [Reading(now_ns, "x", "calls", float(self.calls), "count")]

    def stop(self) -> None:
        self.stopped = True


def test_a_failing_sampler_ends_alone() -> None:
    planted = _Planted()
    times = iter(range(100, 200))
    recorder = TelemetryRecorder([planted, HostSampler()], period_s=3600, clock=lambda: next(times))
    assert recorder.start() == ["planted", "host"]
    for _ in range(4):
        recorder.sample()
    found = recorder.take()
    recorder.stop()
    assert [(r.timestamp_ns, r.value) for r in found if r.label == "x"] == [(100, 1.0), (102, 2.0)]
    assert recorder.failed == {"planted": "RuntimeError: planted"}
    assert planted.calls == 3
    assert len({r.timestamp_ns for r in found if r.label == "host"}) == 4


def test_the_background_thread_samples_until_stopped() -> None:
    recorder = TelemetryRecorder([HostSampler()], period_s=0.01)
    recorder.start()
    deadline = time.monotonic() + 20
    found: list[Reading] = []
    while len({r.timestamp_ns for r in found}) < 3 and time.monotonic() < deadline:
        time.sleep(0.02)
        found += recorder.take()
    recorder.stop()
    assert len({r.timestamp_ns for r in found}) >= 3
    recorder.take()
    time.sleep(0.05)
    assert recorder.take() == []
    assert recorder.cost_ns > 0


def test_readings_nobody_takes_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("explorer.collectors.telemetry.recorder.MAX_READINGS", 5)
    assert MAX_READINGS > 5
    recorder = TelemetryRecorder([HostSampler()], period_s=3600)
    recorder.start()
    recorder.sample()
    recorder.sample()
    recorder.stop()
    assert len(recorder.take()) == 5
    assert recorder.dropped > 0


def test_no_sampler_starts_no_thread() -> None:
    recorder = TelemetryRecorder([NeuronSysfsSampler("/nowhere")])
    assert recorder.start() == []
    assert recorder._thread is None
    recorder.stop()


def test_a_log_becomes_counters(tmp_path: Path) -> None:
    log = tmp_path / "monitor.ndjson"
    rows = [json.dumps(record(runtime(0, value))) for value in (10.0, 20.0, 30.0)]
    log.write_text("\n".join([rows[0], "garbage", rows[1], rows[2]]) + "\n")
    os.utime(log, ns=(10**18, 10**18))
    report = import_trace(log, tmp_path / "run")
    assert report.formats == ["neuron_monitor"]
    run = open_run(report.directory)
    rows_found = run.sql(
        """SELECT c.timestamp_ns, c.value, t.label, t.device_type, t.device_index FROM counters c JOIN tracks t USING (rank, track_id)
           WHERE c.name = 'utilization' ORDER BY c.timestamp_ns"""
    ).rows()
    assert [row["value"] for row in rows_found] == [10.0, 20.0, 30.0]
    assert [row["timestamp_ns"] for row in rows_found] == [10**18 - 6 * 10**9, 10**18 - 2 * 10**9, 10**18]
    assert {(row["label"], row["device_type"], row["device_index"]) for row in rows_found} == {
        ("neuron core 0", "neuron", 0)
    }
    kinds = {row["kind"]: row["count"] for row in run.sql("SELECT kind, count FROM health").rows()}
    assert kinds["neuron_monitor_errors"] == 3
    assert run.sql("SELECT reason FROM quarantine").rows() == [{"reason": "no_record"}]


class _FakeNvml:
    """Two devices; the second supports memory only."""

    NVML_TEMPERATURE_GPU = 0
    NVML_CLOCK_SM = 1
    NVML_CLOCK_MEM = 2

    def __init__(self) -> None:
        self.open = 0

    def nvmlInit(self) -> None:
        self.open += 1

    def nvmlShutdown(self) -> None:
        self.open -= 1

    def nvmlDeviceGetCount(self) -> int:
        return 2

    def nvmlDeviceGetHandleByIndex(self, place: int) -> int:
        return place

    def _only_first(self, handle: int) -> None:
        if handle:
            raise RuntimeError("not supported")

    def nvmlDeviceGetUtilizationRates(self, handle: int) -> SimpleNamespace:
        self._only_first(handle)
        return SimpleNamespace(gpu=70, memory=30)

    def nvmlDeviceGetMemoryInfo(self, handle: int) -> SimpleNamespace:
        return SimpleNamespace(used=1 << 30)

    def nvmlDeviceGetPowerUsage(self, handle: int) -> int:
        self._only_first(handle)
        return 350_500

    def nvmlDeviceGetTemperature(self, handle: int, kind: int) -> int:
        self._only_first(handle)
        return 55

    def nvmlDeviceGetClockInfo(self, handle: int, kind: int) -> int:
        self._only_first(handle)
        return {1: 1980, 2: 2619}[kind]

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, handle: int) -> int:
        self._only_first(handle)
        return 0x1


def test_nvidia_values(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = _FakeNvml()
    monkeypatch.setitem(sys.modules, "pynvml", fake)  # type: ignore[arg-type]
    sampler = NvmlSampler()
    assert sampler.start()
    found = {(r.label, r.name): (r.value, r.unit) for r in sampler.sample(1)}
    assert found == {
        ("cuda:0", "utilization"): (70.0, "percent"),
        ("cuda:0", "memory_utilization"): (30.0, "percent"),
        ("cuda:0", "memory_used"): (float(1 << 30), "bytes"),
        ("cuda:0", "power"): (350.5, "watt"),
        ("cuda:0", "temperature"): (55.0, "celsius"),
        ("cuda:0", "sm_clock"): (1.98e9, "hertz"),
        ("cuda:0", "memory_clock"): (2.619e9, "hertz"),
        ("cuda:0", "throttled"): (0.0, "bool"),
        ("cuda:1", "memory_used"): (float(1 << 30), "bytes"),
    }
    sampler.stop()
    assert fake.open == 0
