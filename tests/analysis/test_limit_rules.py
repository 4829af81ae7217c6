"""Rules that speak of no time or of the device's limits, each on a run with the fault and on one without."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from explorer.analysis.findings import find
from explorer.model.finding import Finding, Findings
from tests.analysis.evidence import check_evidence
from tests.analysis.run_builder import RunBuilder, at


@pytest.fixture
def builder(tmp_path: Path) -> RunBuilder:
    return RunBuilder(tmp_path / "run")


def of_rule(findings: Findings, rule: str) -> list[Finding]:
    assert [item for item in findings.not_checked if "failed" in item.reason] == []
    return [finding for finding in findings if finding.rule == rule]


def steps_with_memory(builder: RunBuilder, kept: bool) -> None:
    """Each step allocates 1 MB at line 12 for its work and 64 KB at line 30; the latter is freed in the step or never."""
    builder.steps(8, 1_000)
    work, losses = builder.line(12, "y = model(x)"), builder.line(30, "losses.append(loss)")
    held = 5_000_000
    for i in range(8):
        start = i * 1_000
        builder.state(work, start, 1_000)
        builder.op("aten::mm", start, 990, site=work)
        changes = [(10, 1, 1_000_000, work), (20, 100 + i, 64_000, losses), (900, 1, -1_000_000, work)]
        changes += [] if kept else [(950, 100 + i, -64_000, losses)]
        for when, address, size, site in changes:
            held += size
            builder._event += 1
            builder.row("memory_events", event_id=builder._event, timestamp_ns=at(start + when), action="alloc" if size > 0 else "free",
                        address=address, size_bytes=size, allocated_bytes=held, device="cpu", site_id=site)  # fmt: skip


def test_memory_that_grows_in_each_step_names_what_is_kept(builder: RunBuilder) -> None:
    steps_with_memory(builder, kept=True)
    run = builder.open()
    findings = find(run)
    (finding,) = of_rule(findings, "memory_growth")
    assert (finding.severity, finding.saving.basis, finding.saving.expected) == ("medium", "none", 0)
    assert finding.lines[0].line == 30
    assert "62.5 KiB in a step, in 6 of 6 steps" in finding.evidence[0].statement
    check_evidence(run, findings)


def test_memory_that_is_freed_does_not_grow(builder: RunBuilder) -> None:
    steps_with_memory(builder, kept=False)
    assert of_rule(find(builder.open()), "memory_growth") == []


def on_a_device(builder: RunBuilder, allocated: int, reserved: int, memory: int = 80_000) -> Findings:
    builder.steps(4, 1_000)
    stream = builder.stream()
    line = builder.line(12, "y = model(x)")
    builder.row("devices", device="cuda:0", name="Toy", memory_bytes=memory)
    for i in range(4):
        builder.event("kernel", "gemm", i * 1_000, 990, track=stream, site=line)
    builder._event += 1
    builder.row("memory_events", event_id=builder._event, timestamp_ns=at(10), action="alloc", address=1, size_bytes=allocated,
                allocated_bytes=allocated, reserved_bytes=reserved, device="cuda:0", site_id=line)  # fmt: skip
    return find(builder.open())


def test_a_nearly_full_device_says_what_fills_it(builder: RunBuilder) -> None:
    (finding,) = of_rule(on_a_device(builder, 70_000, 78_000), "memory_pressure")
    assert (finding.severity, finding.lines[0].line) == ("medium", 12)
    assert "nearly full" in finding.title


def test_fragmented_memory_is_a_low_notice(builder: RunBuilder) -> None:
    (finding,) = of_rule(on_a_device(builder, 30_000, 60_000), "memory_pressure")
    assert finding.severity == "low"
    assert "expandable_segments" in finding.advice


def test_a_cache_on_an_empty_device_is_no_fault(builder: RunBuilder) -> None:
    assert of_rule(on_a_device(builder, 10_000, 20_000), "memory_pressure") == []


def compiled(builder: RunBuilder, first_only: bool, steps: int = 4) -> Findings:
    if steps:
        builder.steps(steps, 10_000)
    line = builder.line(20, "y = compiled(x)")
    for i in range(max(1, steps)):
        start = i * 10_000
        builder.state(line, start, 10_000)
        if i == 0 and first_only:
            builder.event("compile", "forward", start + 100, 6_000, site=line)
        builder.op("aten::mm", start + 6_200, 3_000, site=line)
    return find(builder.open())


def test_a_first_step_that_compiles_is_said_and_promises_nothing(builder: RunBuilder) -> None:
    (finding,) = of_rule(compiled(builder, True), "cold_compile")
    assert (finding.severity, finding.saving.basis, finding.lines[0].line) == ("low", "none", 20)
    assert "6 ms" in finding.evidence[0].statement


def test_compilation_counts_where_the_recording_has_no_steps(builder: RunBuilder) -> None:
    (finding,) = of_rule(compiled(builder, True, steps=0), "cold_compile")
    assert (finding.severity, finding.saving.expected) == ("high", 6_000_000)


def test_compilation_before_the_first_complete_step_is_said(builder: RunBuilder) -> None:
    """A recording begins inside a step, and that is the one that compiles."""
    line = builder.line(20, "y = compiled(x)")
    builder.steps(3, 10_000, first=1, start=90_000)
    builder.row("steps", step=0, start_ns=at(0), duration_ns=90_000_000, complete=False)
    builder.event("compile", "forward", 100, 80_000, site=line)
    for i in range(3):
        builder.op("aten::mm", 90_000 + i * 10_000, 9_000, site=line)
    found = find(builder.open())
    assert [finding.severity for finding in of_rule(found, "cold_compile")] == ["low"]
    assert of_rule(found, "cold_compile")[0].evidence[0].statement == (
        "1 compilation took 80 ms of the recording up to the end of its first complete step (1)."
    )
    assert of_rule(found, "recompiles") == []


def test_without_compilation_there_is_nothing_to_warm_up(builder: RunBuilder) -> None:
    assert of_rule(compiled(builder, False), "cold_compile") == []


def convolutions(builder: RunBuilder, benchmark: bool | None, varying: bool = False) -> Findings:
    builder.steps(4, 10_000)
    stream, line = builder.stream(), builder.line(40, "x = self.conv(x)")
    for i in range(4):
        start = i * 10_000
        size = 64 + i if varying else 64
        outer = builder.op(
            "aten::conv2d", start, 50, site=line, shapes=json.dumps([[8, 3, size, size], [16, 3, 3, 3], []])
        )
        call = builder.event("runtime", "cudaLaunchKernel", start + 5, 5, site=line, parent=outer)
        builder.event(
            "kernel",
            "implicit_gemm_fprop",
            start + 20,
            8_000,
            track=stream,
            site=line,
            launch_id=call,
            op_id=outer,
        )
    directory = builder.write()
    if benchmark is not None:
        path = Path(directory) / "manifests" / "rank-0.json"
        manifest = json.loads(path.read_text())
        manifest["host"]["cudnn_benchmark"] = benchmark
        path.write_text(json.dumps(manifest))
    from explorer.analysis.run import open_run

    return find(open_run(directory))


def test_fixed_convolutions_without_benchmark(builder: RunBuilder) -> None:
    (finding,) = of_rule(convolutions(builder, False), "cudnn_benchmark")
    assert finding.lines[0].line == 40
    assert finding.saving.expected == 400_000
    assert finding.confidence == "low"


@pytest.mark.parametrize(("is_on", "varying"), [(True, False), (False, True)])
def test_benchmark_that_is_on_or_would_not_help(builder: RunBuilder, is_on: bool, varying: bool) -> None:
    assert of_rule(convolutions(builder, is_on, varying), "cudnn_benchmark") == []


def test_a_run_that_does_not_say_so_is_not_checked(builder: RunBuilder) -> None:
    findings = convolutions(builder, None)
    assert "does not say" in next(
        item.reason for item in findings.not_checked if item.rule == "cudnn_benchmark"
    )


def on_a_known_device(builder: RunBuilder, product_us: float, moving_us: float) -> Findings:
    """One product of 1.6e10 operations on a device of 1e13 per second (1,600 µs), and one add that moves 48 MB at 1e12 bytes/s."""
    builder.steps(4, 10_000)
    stream = builder.stream()
    product, add = builder.line(40, "y = x @ w"), builder.line(41, "z = y + b")
    peaks = json.dumps({"float32": 1e13, "vector": 1e13})
    builder.row("devices", device="cuda:0", name="Toy", peak_flops=peaks, memory_bandwidth=1e12)
    for i in range(4):
        start = i * 10_000.0
        for name, site, shape, offset, length in (
            ("aten::mm", product, [2000, 2000], 0, product_us),
            ("aten::add", add, [2000, 2000], product_us, moving_us),
        ):
            outer = builder.op(
                name,
                start + offset / 100,
                40,
                site=site,
                shapes=json.dumps([shape, shape]),
                dtypes='["float","float"]',
            )
            call = builder.event(
                "runtime", "cudaLaunchKernel", start + offset / 100 + 5, 5, site=site, parent=outer
            )
            builder.event(
                "kernel",
                "kernel of " + name,
                start + 100 + offset,
                length,
                track=stream,
                site=site,
                launch_id=call,
                op_id=outer,
            )
    return find(builder.open())


def test_a_product_far_below_the_roof(builder: RunBuilder) -> None:
    found = of_rule(on_a_known_device(builder, 8_000, 48), "low_efficiency")
    assert [finding.title for finding in found] == ["Products far below the device's peak"]
    assert found[0].lines[0].line == 40
    assert found[0].confidence == "low"


def test_a_product_at_the_roof_is_left_alone(builder: RunBuilder) -> None:
    assert of_rule(on_a_known_device(builder, 2_000, 60), "low_efficiency") == []


def test_a_step_that_only_moves_memory(builder: RunBuilder) -> None:
    found = of_rule(on_a_known_device(builder, 2_000, 6_000), "low_efficiency")
    assert [finding.title for finding in found] == ["Much of the step only moves memory"]
    assert found[0].lines[0].line == 41


def busy_steps(builder: RunBuilder, counters: dict[str, float | None]) -> int:
    """Four steps of one op each, and at each of them these percentages, where known; the counters' track."""
    builder.steps(4, 1_000)
    line = builder.line(12, "y = model(x)")
    for i in range(4):
        builder.op("aten::mm", i * 1_000, 990, site=line)
    track = builder.track("counter", "cpu", None, "host")
    for i in range(4):
        for name, value in counters.items():
            if value is not None:
                builder.row(
                    "counters", track_id=track, timestamp_ns=at(i * 1_000), name=name, value=value, unit="%"
                )
    return track


@pytest.mark.parametrize(
    ("machine", "process", "said"), [(99.0, 40.0, True), (99.0, 99.0, False), (40.0, 40.0, False)]
)
def test_contention_is_said_once(builder: RunBuilder, machine: float, process: float, said: bool) -> None:
    busy_steps(builder, {"machine.cpu": machine, "process.cpu": process})
    found = of_rule(find(builder.open()), "contention")
    assert [finding.severity for finding in found] == (["low"] if said else [])


@pytest.mark.parametrize(
    ("children", "cores", "said"),
    [(150.0, 2, []), (100.0, 2, ["low"]), (150.0, 4, ["low"]), (None, 2, ["low"]), (150.0, None, ["low"])],
)
def test_workers_of_the_program_are_no_other_programs(
    builder: RunBuilder, children: float | None, cores: int | None, said: list[str]
) -> None:
    builder.host = {"cpu_count": cores} if cores else {}
    busy_steps(builder, {"machine.cpu": 100.0, "process.cpu": 48.0, "children.cpu": children})
    run = builder.open()
    found = of_rule(find(run), "contention")
    assert [finding.severity for finding in found] == said
    if found:
        (evidence,) = found[0].evidence
        more = "" if children is None else f", and processes it started {children:.0f} %"
        assert (
            evidence.statement
            == f"The machine's processors were 100 % busy, and this program had 48 % of one{more}."
        )
        assert run.sql(evidence.sql).rows() == [{"machine": 100.0, "process": 48.0, "children": children}]


def test_waiting_before_the_steps_is_no_contention(builder: RunBuilder) -> None:
    track = busy_steps(builder, {})
    # The compiler's own processes keep the machine busy for seven samples, then the steps compute.
    for i in range(-7, 3):
        for name, value in (("machine.cpu", 99.0), ("process.cpu", 2.0 if i < 0 else 98.0)):
            builder.row(
                "counters", track_id=track, timestamp_ns=at(i * 1_000 + 500), name=name, value=value, unit="%"
            )
    assert of_rule(find(builder.open()), "contention") == []


@pytest.mark.parametrize("kind", ["program_profiler", None])
def test_a_profiler_left_on_is_said_with_its_line(builder: RunBuilder, kind: str | None) -> None:
    builder.steps(4, 1_000)
    line = builder.line(12, "y = model(x)")
    start = builder.line(8, "with torch.profiler.profile() as prof:")
    builder.state(start, 0, 10)
    for i in range(4):
        builder.op("aten::mm", i * 1_000 + 10, 980, site=line)
    if kind:
        builder.row(
            "health", kind=kind, severity="warning", count=2, message="The program started a profiler."
        )
    found = of_rule(find(builder.open()), "debug_mode")
    assert [(f.severity, f.lines[0].line) for f in found] == ([("medium", 8)] if kind else [])
