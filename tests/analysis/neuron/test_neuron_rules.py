"""Every Neuron rule on the planted story, with savings computed from the planted intervals, and on a profile without faults."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from explorer.analysis.findings import all_rules, find
from explorer.analysis.run import Run, open_run
from explorer.collectors.neuron.session_import import import_session
from explorer.model.finding import Finding
from tests.neuron_fixture.builder import ProfileBuilder
from tests.neuron_fixture.intervals import Interval, intersect, length, subtract, union
from tests.neuron_fixture.session import LOAD_NS, STEP_NS, write_session
from tests.neuron_fixture.story import (
    ATTENTION_ROUNDS,
    CC_HIDDEN_NS,
    CC_NS,
    MATMUL_FLOPS,
    SMALL_DMAS,
    TILES,
    TRANSPOSES,
    Story,
    _metadata,
    plant,
)

RULES = {rule.name: rule for rule in all_rules() if rule.name.startswith("neuron_")}


def _import(story: Story, folder: Path) -> Run:
    story.builder.write(folder / "source")
    return open_run(import_session(folder / "source", folder / "run").directory)


def _find(run: Run, rule: str, **settings: float) -> list[Finding]:
    found = find(
        run, rules=[RULES[rule]], settings={f"{rule}.{k}": v for k, v in settings.items()}, replay=False
    )
    assert not found.not_checked
    return list(found)


def _compute(story: Story, pcore: int) -> list[Interval]:
    return [span for (core, _), spans in story.engines.items() if core == pcore for span in spans]


def _tensor_gaps(story: Story, pcore: int, region: str) -> list[Interval]:
    spans = union(story.engines[pcore, "Tensor"])
    first, last = story.regions[region]
    return [(a[1], b[0]) for a, b in pairwise(spans) if first < b[0] <= last]


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> tuple[Story, Run]:
    story = plant()
    return story, _import(story, tmp_path_factory.mktemp("rules"))


def _line(finding: Finding) -> tuple[str, int]:
    return finding.lines[0].file, finding.lines[0].line


def test_spill(planted: tuple[Story, Run]) -> None:
    story, run = planted
    (finding,) = _find(run, "neuron_spill")
    assert _line(finding) == ("/opt/app/model.py", 14)
    # Tiles behind a save wait for the reload: every third gap of the region, starting with the first.
    gaps = _tensor_gaps(story, 0, "matmul")[::3][: TILES // 3]
    assert finding.saving.high == subtract(gaps, _compute(story, 0))
    assert finding.lines[0].time_ns == length(gaps)
    assert f"{TILES // 3} gaps" in finding.evidence[0].statement


def test_small_dma(planted: tuple[Story, Run]) -> None:
    story, run = planted
    (finding,) = _find(run, "neuron_small_dma")
    assert _line(finding) == ("kernels/attention.py", 42)
    exposed = max(subtract(_tensor_gaps(story, core, "attention"), _compute(story, core)) for core in (0, 1))
    assert finding.saving.high == exposed
    assert f"{ATTENTION_ROUNDS * SMALL_DMAS} transfers of 256 B" in finding.evidence[0].statement


def test_waiting_for_dma(planted: tuple[Story, Run]) -> None:
    story, run = planted
    (finding,) = _find(run, "neuron_dma_wait")
    packets = {
        core: [s for (c, _), spans in story.packets.items() if c == core for s in spans] for core in (0, 1)
    }
    assert finding.saving.high == max(
        subtract(packets[core], _compute(story, core) + (story.collectives)) for core in (0, 1)
    )
    assert "prefetch" in finding.advice


def test_dma_mode(planted: tuple[Story, Run]) -> None:
    story, run = planted
    assert not _find(run, "neuron_dma_mode")  # static DMA leads
    (finding,) = _find(run, "neuron_dma_mode", software_share=0.4)
    exposed = max(
        subtract(story.packets[core, "software_dynamic"], _compute(story, core) + story.collectives)
        for core in (0, 1)
    )
    assert finding.saving.high == exposed


def test_weight_reload(planted: tuple[Story, Run]) -> None:
    _story, run = planted
    (finding,) = _find(run, "neuron_weight_reload")
    assert _line(finding) == ("/opt/app/model.py", 14)
    # The loads are TILES blocks of 2400 ns, none under compute; 47 of 48 loads are too many.
    assert finding.saving.high == round(TILES * 2400 * (1 - 1 / (2 * TILES)))


def test_transposes(planted: tuple[Story, Run]) -> None:
    story, run = planted
    assert not _find(run, "neuron_transposes")
    share = TRANSPOSES * MATMUL_FLOPS / story.flops[0]
    (finding,) = _find(run, "neuron_transposes", flops_share=share * 0.99)
    assert not _find(run, "neuron_transposes", flops_share=share * 1.01)
    assert _line(finding) == ("/opt/app/model.py", 20)
    assert finding.saving.high == TRANSPOSES * 213


def test_throttling_counts_only_where_the_engine_works(planted: tuple[Story, Run]) -> None:
    story, run = planted
    (finding,) = _find(run, "neuron_throttling")
    active = length(intersect(story.throttles, story.engines[0, "Tensor"]))
    assert active == 12_000
    assert finding.saving.high == active // 2  # 8 of 16 cycles
    assert {(line.file, line.line): line.time_ns for line in finding.lines} == {
        ("/opt/app/model.py", 14): 3000,
        ("/opt/app/model.py", 15): 3000,
    }


def test_exposed_collectives(planted: tuple[Story, Run]) -> None:
    story, run = planted
    (finding,) = _find(run, "neuron_exposed_collectives")
    both = _compute(story, 0) + _compute(story, 1)
    assert finding.saving.high == subtract(story.collectives, both) == CC_NS - CC_HIDDEN_NS
    assert _line(finding) == ("/opt/app/model.py", 25)


def test_late_triggers(tmp_path: Path) -> None:
    story = _one_engine("Vector", 5_000, 100)
    start = story.window[1] + 12_000
    story.builder.timed(
        "CcOp", start, 5000, operation="AllReduce", algorithm="ring", num_elements=1024, dtype="float32", op_id=1, stream_id=0,
        stream_index=0, trigger_engine="Pool", input_size=4096, cc_trigger_start_delay=13_000,
    )  # fmt: skip
    run = _import(story, tmp_path)
    (finding,) = _find(run, "neuron_late_triggers")
    # Of the 13 us before it, 1 us lies under compute.
    assert finding.saving.high == 12_000
    assert not _find(run, "neuron_late_triggers", delay_ns=13_001)


def test_low_tensor_engine_use(planted: tuple[Story, Run]) -> None:
    story, run = planted
    (finding,) = _find(run, "neuron_tensor_use")
    start, end = story.window
    rooms = {}
    for core in (0, 1):
        packets = [span for (where, _), spans in story.packets.items() if where == core for span in spans]
        engines = [length(story.engines[core, name]) for name in ("Tensor", "Vector", "Scalar", "GpSimd")]
        rooms[core] = end - start - max(length(packets), *engines)
    worst = max(rooms, key=lambda core: rooms[core])
    assert finding.saving.high == rooms[worst]
    assert finding.title == f"The Tensor engine of neuron:0 core {worst} stands still most of the time"
    assert finding.lines
    share = length(story.engines[worst, "Tensor"]) / (end - start)
    assert not _find(run, "neuron_tensor_use", active_share=share)


def test_low_tensor_use_is_a_symptom_of_what_explains_it(planted: tuple[Story, Run]) -> None:
    _, run = planted
    found = find(run, rules=list(RULES.values()), replay=False)
    assert "neuron_tensor_use" not in [finding.rule for finding in found]
    (cause,) = [finding for finding in found if any("neuron_tensor_use" in each for each in finding.symptoms)]
    assert cause.rule == "neuron_small_dma"


def test_idle_core(planted: tuple[Story, Run]) -> None:
    story, run = planted
    (finding,) = _find(run, "neuron_idle_core", idle_share=0.001)
    everything = _compute(story, 0) + _compute(story, 1) + story.collectives
    everything += [span for spans in story.packets.values() for span in spans]
    assert finding.saving.high == story.window[1] - story.window[0] - length(everything)


def test_array_fill(planted: tuple[Story, Run]) -> None:
    _, run = planted
    assert not _find(run, "neuron_pe_fill")  # tiles are full: 81 %
    (finding,) = _find(run, "neuron_pe_fill", fill=0.9)
    row = run.engine.sql("SELECT compute_ns, compute_ideal_ns FROM neuron_bounds WHERE core = 0").rows()[0]
    assert finding.saving.high == row["compute_ns"] - row["compute_ideal_ns"]


def _one_engine(engine: str, busy_ns: int, tensor_ns: int, **values: Any) -> Story:
    """A core on which one engine works `busy_ns` in pieces of 1000 ns and Tensor follows each."""
    story = Story(ProfileBuilder("simple"), 0)
    now = 5_000_000
    for _ in range(busy_ns // 1000):
        story.instruction(0, engine, "WORK", now, 1000, "m.py:3", bir_debug_info_source_location="m.py:3")
        story.instruction(
            0, "Tensor", "MATMUL", now + 1000, tensor_ns, "m.py:4", bir_debug_info_source_location="m.py:4",
            raw_flops=tensor_ns * 78_000, adjusted_flops=tensor_ns * 78_000, **values,
        )  # fmt: skip
        now += 1000 + tensor_ns
    story.window = (5_000_000, now)
    _metadata(story)
    for table in ("Throttle", "Error", "Warning", "TensorInfo", "Summary"):
        story.builder.rows.pop(table, None)
    return story


@pytest.mark.parametrize("engine", ["Vector", "Scalar", "GpSimd"])
def test_bound_by_another_engine(tmp_path: Path, engine: str) -> None:
    run = _import(_one_engine(engine, 50_000, 100), tmp_path)
    (finding,) = _find(run, "neuron_engine_bound")
    assert finding.title == f"neuron:0 core 0 is bound by its {engine} engine"
    assert _line(finding) == ("m.py", 3)
    assert finding.saving.high == 50_000 - 5_000
    assert (
        "Tensor waits 50 µs" in finding.evidence[0].statement
        or "Tensor waits 49" in finding.evidence[0].statement
    )


def test_outlier_collectives(tmp_path: Path) -> None:
    story = _one_engine("Vector", 5_000, 100)
    for number in range(6):
        story.builder.timed(
            "CcOp", 5_100_000 + 20_000 * number, 5000 if number != 3 else 15_000, operation="AllReduce", algorithm="ring",
            num_elements=1024, dtype="float32", op_id=number, stream_id=0, stream_index=0, trigger_engine="Pool", input_size=4096,
        )  # fmt: skip
    (finding,) = _find(_import(story, tmp_path), "neuron_collective_outliers")
    assert finding.saving.high == 10_000
    assert "up to 3 times the median" in finding.evidence[0].statement


def test_a_dense_profile_has_no_findings(tmp_path: Path) -> None:
    run = _import(_one_engine("Scalar", 20_000, 19_000), tmp_path)
    found = find(run, rules=list(RULES.values()), replay=False)
    assert [finding.rule for finding in found] == []
    assert {item.rule for item in found.not_checked} == {
        "neuron_host_fallback",
        "neuron_model_loads",
        "neuron_tiny_executions",
    }


@pytest.fixture(scope="module")
def eager(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("eager")
    write_session(folder / "data", tiny=80, loads=True)
    return open_run(import_session(folder / "data", folder / "run").directory, ranks=[1])


def test_warnings_of_the_profiler_come_first(planted: tuple[Story, Run]) -> None:
    _, run = planted
    found = find(run, rules=list(RULES.values()), replay=False)
    assert [finding.rule for finding in found][:2] == ["neuron_warnings", "neuron_errors"]
    assert found[-1].rule == "neuron_nki_coverage"
    warning = found[0]
    assert warning.title == "The profiler warns: Dynamic DMA traces are missing"
    assert "NEURON_RT_ENABLE_DGE_NOTIFICATIONS" in warning.advice
    assert (warning.severity, warning.saving.basis, warning.saves_time) == ("medium", "none", False)
    assert found.health[0]["kind"] == "neuron_warning"
    assert run.health().rows()[0]["kind"] == "neuron_warning"


def test_device_errors_name_what_began_last_before_them(planted: tuple[Story, Run]) -> None:
    story, run = planted
    (finding,) = _find(run, "neuron_errors")
    assert finding.title == "The device reported an error (numerical): NaN in output"
    assert finding.severity == "high"
    at = story.builder.rows["Error"][0]["timestamp"]
    earlier = [r for r in story.builder.rows["Instruction"] if r["pcore_idx"] == 0 and r["start_ts"] <= at]
    last = max(earlier, key=lambda row: row["start_ts"])
    (evidence,) = finding.evidence
    (event,) = evidence.events
    row = run.engine.sql(f"SELECT start_ns, name FROM events WHERE event_id = {event.split(':')[1]}").rows()[
        0
    ]
    assert (row["start_ns"], row["name"]) == (last["start_ts"], last["opcode"])
    assert _line(finding) == ("/opt/app/model.py", 15)


@pytest.mark.parametrize(
    ("description", "kind"), [("Access out of bounds", " (out of bounds)"), ("Parity fault", "")]
)
def test_other_device_errors(tmp_path: Path, description: str, kind: str) -> None:
    story = _one_engine("Vector", 5_000, 4_000)
    story.builder.row("Error", description=description, timestamp=5_001_000, type="Errors", error_type_id=1)
    story.builder.row("Error", description="hello", timestamp=5_001_000, type="Custom Notification")
    (finding,) = _find(_import(story, tmp_path), "neuron_errors")
    assert finding.title == f"The device reported an error{kind}: {description}"


def test_kernel_coverage(planted: tuple[Story, Run]) -> None:
    story, run = planted
    (finding,) = _find(run, "neuron_nki_coverage")
    rows = story.builder.rows["Instruction"]
    kernels = sum(bool(row["nki_source_location"] or row["kernel_instruction_name"]) for row in rows)
    assert f"{kernels} of {len(rows):,} instructions" in finding.evidence[0].statement.replace("\u202f", ",")
    assert finding.severity == "low"
    assert {line.file for line in finding.lines}.isdisjoint({"kernels/attention.py"})
    assert not _find(run, "neuron_nki_coverage", coverage=kernels / len(rows))


def test_tiny_graphs(eager: Run) -> None:
    (finding,) = _find(eager, "neuron_tiny_executions")
    # 79 gaps of 10 us, and the one from the step's own graph to the first tiny one.
    rows = eager.engine.sql(
        "SELECT step, start_ns, duration_ns FROM events WHERE name = 'nc_exec_running' ORDER BY step, start_ns"
    ).rows()
    assert len(rows) == 2 * 81
    gaps = [
        b["start_ns"] - a["start_ns"] - a["duration_ns"] for a, b in pairwise(rows) if a["step"] == b["step"]
    ]
    assert finding.saving.high == sum(gaps) // 2
    assert "81 executions per step" in finding.evidence[0].statement


def test_graph_loads(eager: Run) -> None:
    (finding,) = _find(eager, "neuron_model_loads")
    assert "1 load " in finding.evidence[0].statement
    assert finding.saving.high == LOAD_NS


def test_host_fallback(eager: Run) -> None:
    (finding,) = _find(eager, "neuron_host_fallback")
    assert finding.title == "aten::nonzero ran on the host, not on the NeuronCore"
    assert _line(finding) == ("model.py", 40)
    assert finding.saving.high == 40_000


def test_session_sums_are_per_profiled_step(tmp_path: Path) -> None:
    write_session(tmp_path / "data")
    run = open_run(import_session(tmp_path / "data", tmp_path / "run").directory, ranks=[0])
    (finding,) = _find(run, "neuron_exposed_collectives", exposed_share=0.005)
    assert finding.saving.high == CC_NS - CC_HIDDEN_NS
    assert finding.saving_share == pytest.approx(0.6 * (CC_NS - CC_HIDDEN_NS) / (STEP_NS - 1000), rel=1e-4)


def test_evidence_can_be_repeated_by_anyone(planted: tuple[Story, Run]) -> None:
    _, run = planted
    found = find(run, rules=list(RULES.values()), replay=False)
    assert len(found) >= 4
    for finding in found:
        for evidence in finding.evidence:
            assert len(run.sql(evidence.sql)) == 1
            for event in evidence.events:
                assert run.sql(f"SELECT 1 FROM events WHERE event_id = {event.split(':')[1]}").rows()
