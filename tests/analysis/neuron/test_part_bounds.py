"""Bounds of regions and of source lines against plain Python arithmetic on a made-up profile of two physical cores."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from explorer.analysis.neuron.part_bounds import union_by_group
from explorer.analysis.result import Result
from explorer.analysis.run import Run, open_run
from explorer.collectors.neuron.session_import import import_session
from tests.neuron_fixture.builder import ProfileBuilder
from tests.neuron_fixture.intervals import Interval, length, union

START = 5_000_000
BYTES_PER_S = 400e9
GHZ = 2.5
FLOP_PER_NS = 128 * 128 * 2 * GHZ
LAYERS = ("blocks.0/attn", "blocks.0/mlp", "")
OPERATORS = {1: "aten::addmm", 2: "aten::softmax", 3: "aten::addmm"}
ENGINES = ("Tensor", "Vector", "Scalar", "GpSimd")


@dataclass
class Part:
    """What was planted for one region or line of one core."""

    engines: dict[str, list[Interval]] = field(default_factory=lambda: defaultdict(list))
    packets: list[Interval] = field(default_factory=list)
    moved: float = 0.0
    flops: float = 0.0
    transposes: float = 0.0
    instructions: float = 0.0
    tensors: set[str] = field(default_factory=set)


@dataclass
class Planted:
    builder: ProfileBuilder
    sizes: dict[str, int]
    parts: dict[tuple[str, str, int], Part] = field(default_factory=lambda: defaultdict(Part))


def _plant(packets: bool) -> Planted:
    numbers = random.Random(3)
    builder = ProfileBuilder("parts")
    planted = Planted(builder, {"x": 4096, "y": 8192})
    for number, line in ((1, 10), (2, 20), (3, 30)):
        builder.row("StackFrame", id=str(number), file_location_id=number, parent_frame_id="0")
        builder.row(
            "StackFrameFileLocation", id=str(number), file_name_id=1, function_name_id=1, line_number=line
        )
    builder.row("StackFrameFileName", id="1", name="/opt/app/model.py")
    builder.row("StackFrameFunctionName", id="1", name="forward")
    for identity, name in OPERATORS.items():
        for raw in (0, 1):
            builder.row(
                "FrameworkInstruction", id=10 * identity + raw, raw_framework_id=identity, framework_name=name
            )
    placed: dict[int, list[tuple[str, str, int, float]]] = {}
    for identity in range(1, 161):
        core, engine = numbers.randrange(2), numbers.choice(ENGINES)
        start, duration = START + numbers.randrange(40_000), numbers.randrange(20, 900)
        layer, operator = numbers.choice(LAYERS), numbers.randrange(4)
        lines = numbers.choice([[10], [20], [30], [10, 20], []])
        matmul = engine == "Tensor" and numbers.random() < 0.7
        flops = numbers.randrange(1, 9) * 1_000_000 if matmul else None
        transposed = matmul and numbers.random() < 0.3
        builder.timed(
            "Instruction", start, duration, id=identity, engine=engine, pcore_idx=core, bir_id=str(identity),
            opcode="MATMUL" if matmul else "COPY", layer=layer or None, raw_framework_id=operator or None,
            stack_frame_ids=str([line // 10 for line in lines]) if lines else None, adjusted_flops=flops,
            tensor_instruction_type="TRANSPOSE" if transposed else "REGULAR" if matmul else None,
        )  # fmt: skip
        keys = [("line", str(line), core, 1 / len(lines)) for line in lines]
        keys += [("layer", layer, core, 1.0)] if layer else []
        keys += [("framework", OPERATORS[operator], core, 1.0)] if operator else []
        placed[identity] = keys
        for kind, name, where, share in keys:
            part = planted.parts[kind, name, where]
            part.engines[engine].append((start, start + duration))
            part.instructions += share
            part.flops += share * (flops or 0)
            part.transposes += share * (flops or 0) * transposed
    for block in range(1, 41):
        core = numbers.randrange(2)
        fed = numbers.sample(sorted(placed), numbers.choice([1, 1, 2, 3]))
        variable = numbers.choice(["x", "y", "weights", ""])
        spans = [
            (start, start + numbers.randrange(10, 300))
            for start in (START + numbers.randrange(40_000) for _ in range(3))
        ]
        kind = numbers.choice(["data", "instruction"])
        if not packets:
            spans = [(min(start for start, _ in spans), max(end for _, end in spans))]
        size = numbers.choice([4, 512, 2048])
        for number, (start, end) in enumerate(spans if packets else []):
            builder.timed(
                "DmaPacket", start, end - start, id=1000 * block + number, pcore_idx=core, packet_idx=number,
                packet_aggregation_id=block, transfer_bytes=size, queue_type=kind,
            )  # fmt: skip
        builder.timed(
            "DmaPacketAggregated", min(s for s, _ in spans), max(e for _, e in spans) - min(s for s, _ in spans), id=block, pcore_idx=core,
            queue_name="q0", queue_type=kind, op="copy", variable=variable, transfer_bytes=size * len(spans), source="", dest="",
        )  # fmt: skip
        for instruction in fed:
            names = (
                ("DmaPacketAggregated", "Instruction")
                if numbers.random() < 0.5
                else ("dma_block", "instruction")
            )
            if numbers.random() < 0.5:
                builder.row("Flow", in_table=names[0], in_id=block, out_table=names[1], out_id=instruction)
            else:
                builder.row("Flow", in_table=names[1], in_id=instruction, out_table=names[0], out_id=block)
        for kind_of in ("line", "layer", "framework"):
            names_of = {key[1] for instruction in fed for key in placed[instruction] if key[0] == kind_of}
            for name in names_of:
                part = planted.parts[kind_of, name, core]
                part.packets += spans
                counted = kind != "instruction" and size > 4
                part.moved += size * len(spans) / len(names_of) if counted else 0
                if variable in planted.sizes:
                    part.tensors.add(variable)
    for core in (0, 1):
        builder.row("TensorInfo", variable_name="x", type="IN", size=4096, pcore_idx=core)
        builder.row("TensorInfo", variable_name="y", type="OUT", size=8192, pcore_idx=core)
        builder.row("TensorInfo", variable_name="weights", type="WEIGHT", size=1 << 20, pcore_idx=core)
    builder.row(
        "Metadata", profile_schema_version="7.4.0", num_physical_cores=2, dma_ddr_bandwidth=BYTES_PER_S,
        tensor_engine_num_rows=128, tensor_engine_num_cols=128, tensor_engine_clock_freq=GHZ,
    )  # fmt: skip
    return planted


@pytest.fixture(scope="module", params=[True, False], ids=["packets", "blocks"])
def opened(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Planted, Run]:
    folder = tmp_path_factory.mktemp("parts")
    planted = _plant(request.param)
    planted.builder.write(folder / "source")
    return planted, open_run(import_session(folder / "source", folder / "run").directory)


@pytest.fixture(params=["trusted", "sandbox"])
def ask(request: pytest.FixtureRequest, opened: tuple[Planted, Run]) -> Callable[[str], Result]:
    return opened[1].engine.sql if request.param == "trusted" else opened[1].sql


def _check(row: dict[str, object], part: Part, sizes: dict[str, int]) -> None:
    engines = {name: length(part.engines[name]) for name in ENGINES}
    memory = length(part.packets)
    pipeline = max(engines.values())
    whole = [span for spans in part.engines.values() for span in spans] + part.packets
    assert row["instructions"] == pytest.approx(part.instructions)
    assert (row["start_ns"], row["end_ns"]) == (min(s for s, _ in whole), max(e for _, e in whole))
    assert row["active_ns"] == length(whole)
    assert (row["memory_ns"], row["compute_ns"], row["pipeline_ns"]) == (memory, engines["Tensor"], pipeline)
    # The profile holds the bandwidth and the clock as 32-bit floats; 400e9 and 2.5 GHz are whole in them.
    assert row["memory_ideal_ns"] == pytest.approx(part.moved / BYTES_PER_S * 1e9, abs=0.51)
    unique = sum(sizes[name] for name in part.tensors)
    assert row["memory_no_reload_ns"] == pytest.approx(unique / BYTES_PER_S * 1e9, abs=0.51)
    assert row["compute_ideal_ns"] == pytest.approx(part.flops / FLOP_PER_NS, abs=0.51)
    assert row["compute_useful_ns"] == pytest.approx((part.flops - part.transposes) / FLOP_PER_NS, abs=0.51)
    assert row["bound_ns"] == max(memory, pipeline)
    if memory >= pipeline:
        assert row["bound"] == "memory"
    else:
        name = max(ENGINES, key=lambda each: engines[each])
        assert row["bound"] == ("compute" if name == "Tensor" else name)
        assert row["busiest_engine"] == name
    assert row["speedup_limit"] == pytest.approx(length(whole) / max(memory, pipeline))


def test_bounds_of_regions(opened: tuple[Planted, Run], ask: Callable[[str], Result]) -> None:
    planted, _ = opened
    rows = ask("SELECT * FROM neuron_region_bounds").rows()
    expected = {key: part for key, part in planted.parts.items() if key[0] != "line"}
    assert {(row["kind"], row["region"], row["core"]) for row in rows} == set(expected)
    for row in rows:
        _check(row, expected[row["kind"], row["region"], row["core"]], planted.sizes)


def test_bounds_of_lines(opened: tuple[Planted, Run], ask: Callable[[str], Result]) -> None:
    planted, _ = opened
    rows = ask("SELECT * FROM neuron_line_bounds").rows()
    expected = {key[1:]: part for key, part in planted.parts.items() if key[0] == "line"}
    assert {(str(row["line"]), row["core"]) for row in rows} == set(expected)
    for row in rows:
        assert row["file"].endswith("model.py")
        _check(row, expected[str(row["line"]), row["core"]], planted.sizes)


def test_a_profile_without_regions_has_none(tmp_path: Path) -> None:
    builder = ProfileBuilder("bare")
    builder.timed("Instruction", START, 100, id=1, engine="Tensor", opcode="MATMUL", bir_id="1")
    builder.write(tmp_path / "source")
    run = open_run(import_session(tmp_path / "source", tmp_path / "run").directory)
    assert run.sql("SELECT * FROM neuron_region_bounds").rows() == []
    assert run.sql("SELECT * FROM neuron_line_bounds").rows() == []


def test_one_sort_unites_every_group() -> None:
    numbers = np.random.default_rng(1)
    group = numbers.integers(0, 7, 400)
    start = numbers.integers(0, 5_000, 400)
    end = start + numbers.integers(0, 60, 400)
    busy, first, last = union_by_group(group, start, end, 9)
    for place in range(9):
        spans = [(int(s), int(e)) for g, s, e in zip(group, start, end) if g == place]
        assert busy[place] == length(spans)
        if spans:
            assert (first[place], last[place]) == (min(s for s, _ in spans), max(e for _, e in spans))
            assert length(union(spans)) == busy[place]
    assert not busy[7:].any()
