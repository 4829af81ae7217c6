"""The planted story: one logical core of two physical ones (LNC=2), five regions each with one known fault.

    matmul      a tiled matmul that spills every third tile to HBM and reloads it (Tensor waits on the reload)
    attention   an NKI kernel that waits on many small software-dynamic DMAs
    transpose   transposes on the Tensor engine
    collective  an all-reduce of 40 us of which 20 us lie under compute
    throttle    a throttled window with work in it, and one without

`Story.intervals` records what was planted, as plain Python numbers; tests compute expectations from those.
"""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.neuron_fixture.builder import ProfileBuilder
from tests.neuron_fixture.intervals import Interval

ROWS = COLS = 128
TENSOR_GHZ = 2.4
HBM_BYTES_PER_S = 716e9
DMA_BYTES_PER_S = 435e9
TILES = 24
ATTENTION_ROUNDS = 16
SMALL_DMAS = 32
SMALL_BYTES = 256
TILE_BYTES = 65536
PACKET_BYTES = 4096
SPILL_BYTES = 32768
MATMUL_FLOPS = 2 * 128 * 128 * 512
TRANSPOSES = 20
CC_NS = 40_000
CC_HIDDEN_NS = 20_000
DEVICE_EPOCH = 5_000_000

FILES = {
    1: "/opt/app/train.py",
    2: "/opt/app/model.py",
    3: "/opt/venv/lib/python3.12/site-packages/torch/nn/functional.py",
}
FUNCTIONS = {1: "train_step", 2: "Block.forward", 3: "linear"}
LOCATIONS = {1: (1, 1, 31), 2: (2, 2, 14), 3: (2, 2, 15), 4: (3, 3, 2100)}
FRAMES = {1: (1, 0), 2: (2, 1), 3: (3, 1), 4: (4, 2)}
"""frame id -> (location, parent); frame 4 is a library frame under model.py:14."""


@dataclass
class Story:
    """The rows and what was planted. Intervals are (start, end) in device nanoseconds by (pcore, engine)."""

    builder: ProfileBuilder
    seed: int
    engines: dict[tuple[int, str], list[Interval]] = field(default_factory=lambda: defaultdict(list))
    packets: dict[tuple[int, str], list[Interval]] = field(default_factory=lambda: defaultdict(list))
    line_ns: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    flops: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    transpose_flops: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    bytes_by_kind: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    collectives: list[Interval] = field(default_factory=list)
    throttles: list[Interval] = field(default_factory=list)
    gaps_on_spill: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    window: Interval = (0, 0)
    regions: dict[str, Interval] = field(default_factory=dict)

    # -- planting ---------------------------------------------------------------------------------------------
    def instruction(
        self, pcore: int, engine: str, opcode: str, start: int, duration: int, line: str, **values: Any
    ) -> int:
        """Plant one instruction and book its time on `line` ('file:line' or '')."""
        identity = self.builder.next_id("Instruction")
        self.builder.timed(
            "Instruction",
            start,
            duration,
            id=identity,
            engine=engine,
            opcode=opcode,
            operands=values.pop("operands", "dst=[0] src=[0]"),
            pcore_idx=pcore,
            pc=identity * 64,
            bir_id=str(identity),
            **values,
        )
        self.engines[pcore, engine].append((start, start + duration))
        self.line_ns[line] += duration
        flops = values.get("adjusted_flops") or 0
        if values.get("tensor_instruction_type") == "TRANSPOSE":
            self.transpose_flops[pcore] += values.get("adjusted_flops_transpose") or 0
        self.flops[pcore] += flops
        return identity

    def dma(
        self,
        pcore: int,
        queue: str,
        kind: str,
        start: int,
        packets: int,
        size: int,
        step: int,
        busy: int,
        **values: Any,
    ) -> tuple[int, int]:
        """Plant one block of `packets` packets, each `busy` ns long, `step` ns apart. Returns (id, end)."""
        builder = self.builder
        identity = builder.next_id("DmaPacketAggregated")
        for number in range(packets):
            begin = start + number * step
            builder.timed(
                "DmaPacket", begin, busy, id=builder.next_id("DmaPacket"), pcore_idx=pcore, packet_idx=number,
                packet_aggregation_id=identity, engine_idx=number % 16, read_bytes=size, write_bytes=size,
                transfer_bytes=size, throughput=size / busy * 1e9, queue_type=kind, queue_name=queue, queue_idx=0,
                variable=values.get("variable"),
            )  # fmt: skip
            self.packets[pcore, kind].append((begin, begin + busy))
        end = start + (packets - 1) * step + busy
        builder.timed(
            "DmaPacketAggregated", start, end - start, id=identity, pcore_idx=pcore, block_id=identity % 1000,
            queue_idx=0, queue_name=queue, queue_type=kind, op=values.pop("op", "copy"),
            read_bytes=size * packets, write_bytes=size * packets, transfer_bytes=size * packets,
            throughput=size * packets / (end - start) * 1e9, read_num_sbuf_partitions=128, write_num_sbuf_partitions=128,
            **{"variable": "", "source": "[[INPUT]]", "dest": "[[SB]]", "semaphore_id": f"S[{identity % 64}]"} | values,
        )  # fmt: skip
        self.bytes_by_kind[kind] += size * packets
        return identity, end

    def flow(self, source: tuple[str, int], target: tuple[str, int], kind: str = "flow") -> None:
        self.builder.row(
            "Flow", in_table=source[0], in_id=source[1], out_table=target[0], out_id=target[1],
            dependency_type=kind, gap_time=0,
        )  # fmt: skip


def plant(seed: int = 7, name: str = "story") -> Story:
    """The whole story, ready to be written or changed."""
    story = Story(ProfileBuilder(name), seed)
    random_numbers = random.Random(seed)
    _debug_info(story)
    ends = []
    for pcore in (0, 1):
        now = DEVICE_EPOCH + 137 * pcore
        for region in (_matmul, _attention, _transpose, _collective, _throttle):
            begin = now
            now = region(story, pcore, now, random_numbers)
            if pcore == 0:
                story.regions[region.__name__.lstrip("_")] = (begin, now)
            now += 500
        ends.append(now)
    story.window = (DEVICE_EPOCH, max(end for spans in story.engines.values() for _, end in spans))
    _metadata(story)
    return story


def _matmul(story: Story, pcore: int, now: int, numbers: random.Random) -> int:
    saved: int | None = None
    for tile in range(TILES):
        load, end = story.dma(pcore, "qSyncIO0", "data", now, 16, PACKET_BYTES, 150, 150, variable="weights0")
        ready, blocker = end, ("DmaPacketAggregated", load)
        if saved is not None:
            reload, end = story.dma(
                pcore, "qSpillReload0", "data", ready, 8, SPILL_BYTES // 8, 200, 200,
                variable="spill0", source="[[VIRTUAL]]",
            )  # fmt: skip
            ready, blocker = end, ("dma_block", reload)
            saved = None
        weights = story.instruction(
            pcore, "Tensor", "LDWEIGHTS", ready, 64, "/opt/app/model.py:14", stack_frame_ids="[4]",
            evt_wait_time_ns=ready - now, weight_queue_bytes=TILE_BYTES,
        )  # fmt: skip
        story.flow(blocker, ("instruction", weights), "semaphore")
        begin = ready + 64
        matmul = weights
        for _ in range(8):
            matmul = story.instruction(
                pcore, "Tensor", "MATMUL", begin, 213, "/opt/app/model.py:14", stack_frame_ids="4",
                raw_flops=MATMUL_FLOPS, adjusted_flops=MATMUL_FLOPS, tensor_instruction_type="REGULAR",
                psum_write_bytes=128 * 512 * 4,
            )  # fmt: skip
            begin += 193
        begin += 20
        copy = story.instruction(
            pcore, "Vector", "TENSOR_COPY", begin, 300 + numbers.randrange(40), "/opt/app/model.py:15",
            stack_frame_ids="[3]", psum_read_bytes=128 * 512 * 4, sbuf_write_bytes=128 * 512 * 2,
        )  # fmt: skip
        story.flow(("Instruction", matmul), ("Instruction", copy), "flow")
        now = begin + 400
        if tile % 3 == 0:
            save, end = story.dma(
                pcore, "qSpillSave0", "data", now, 8, SPILL_BYTES // 8, 200, 200,
                variable="spill0", source="[[SB]]", dest="[[VIRTUAL]]",
            )  # fmt: skip
            story.flow(("Instruction", copy), ("DmaPacketAggregated", save), "flow")
            saved = save
            now = end
    return now


def _attention(story: Story, pcore: int, now: int, numbers: random.Random) -> int:
    for number in range(ATTENTION_ROUNDS):
        start = now
        last = 0
        for _ in range(SMALL_DMAS):
            last, now = story.dma(
                pcore, "qPoolDynamic0", "software_dynamic", now, 1, SMALL_BYTES, 120, 120, variable="kv0"
            )
            now += 20
        matmul = story.instruction(
            pcore, "Tensor", "MATMUL", now, 100, "kernels/attention.py:42",
            kernel_instruction_name=f"I-{number % 4}:77", raw_flops=MATMUL_FLOPS // 8, adjusted_flops=MATMUL_FLOPS // 8,
            tensor_instruction_type="REGULAR", evt_wait_time_ns=now - start, nki_source_location="kernels/attention.py:99",
        )  # fmt: skip
        story.flow(("DmaPacketAggregated", last), ("Instruction", matmul), "semaphore")
        now += 110
        story.instruction(
            pcore, "Scalar", "ACTIVATE", now, 250, "kernels/attention.py:47",
            nki_source_location="kernels/attention.py:47", scalar_activation_fn="exp",
        )  # fmt: skip
        story.instruction(
            pcore, "GpSimd", "IOTA", now + 30, 180 + numbers.randrange(9), "", layer="blocks.0.attn"
        )
        now += 260
    return now


def _transpose(story: Story, pcore: int, now: int, numbers: random.Random) -> int:
    for _ in range(TRANSPOSES):
        story.instruction(
            pcore, "Tensor", "MATMUL", now, 213, "/opt/app/model.py:20",
            bir_debug_info_source_location="/opt/app/model.py:20", raw_flops=MATMUL_FLOPS, adjusted_flops=MATMUL_FLOPS,
            flops_transpose=MATMUL_FLOPS, adjusted_flops_transpose=MATMUL_FLOPS, tensor_instruction_type="TRANSPOSE",
        )  # fmt: skip
        now += 213
    return now


def _collective(story: Story, pcore: int, now: int, numbers: random.Random) -> int:
    if pcore == 0:
        builder = story.builder
        story.instruction(
            pcore, "GpSimd", "CC_TRIGGER", now - 3510, 40, "/opt/app/model.py:25",
            bir_debug_info_source_location="/opt/app/model.py:25",
        )  # fmt: skip
        builder.timed(
            "CcOp", now, CC_NS, operation="AllReduce", algorithm="ring", num_elements=1 << 20, dtype="bfloat16",
            op_id=11, stream_id=1, stream_index=0, trigger_engine="Pool", input_size=2 << 20, output_size=2 << 20,
            algorithm_bandwidth=(2 << 20) / CC_NS * 1e9, bus_bandwidth=(2 << 20) / CC_NS * 1.5e9,
            trigger_start_ts=now - 3500, cc_trigger_start_delay=3500, replica_group_id=0, replica_group="[[0,1,2,3]]",
        )  # fmt: skip
        builder.timed("CcInstruction", now, CC_NS // 2, core_idx=0, description="send", trigger_engine="Pool")
        builder.row("CcStream", stream_id=1, stream_index=0, cc_core_ids="[0]")
        story.collectives.append((now, now + CC_NS))
    # The second core computes outside the window: what hides a collective is compute on the same logical core.
    begin = now if pcore == 0 else now - 137
    for number in range(CC_HIDDEN_NS // 200):
        story.instruction(
            pcore, "Tensor", "MATMUL", begin + 200 * number, 200, "/opt/app/model.py:22",
            hlo_attrs='{"op_type": "dot", "source_file": "/opt/app/model.py", "source_line": 22}',
            raw_flops=MATMUL_FLOPS // 2, adjusted_flops=MATMUL_FLOPS // 2, tensor_instruction_type="REGULAR",
        )  # fmt: skip
    return now + CC_NS


def _throttle(story: Story, pcore: int, now: int, numbers: random.Random) -> int:
    if pcore == 0:
        for begin, duration in ((now, 30_000), (now + 60_000, 5_000)):
            story.builder.row(
                "Throttle", timestamp=begin, duration=duration, k=8, n=16, type="power", pcore_idx=0
            )
            story.throttles.append((begin, begin + duration))
    for number in range(60):
        story.instruction(
            pcore, "Tensor", "MATMUL", now + 400 * number, 200, "/opt/app/model.py:14,/opt/app/model.py:15",
            stack_frame_ids="2,3", raw_flops=MATMUL_FLOPS // 2, adjusted_flops=MATMUL_FLOPS // 2,
            tensor_instruction_type="REGULAR",
        )  # fmt: skip
    return now + 70_000


def _debug_info(story: Story) -> None:
    builder = story.builder
    for identity, name in FILES.items():
        builder.row("StackFrameFileName", id=str(identity), name=name)
    for identity, name in FUNCTIONS.items():
        builder.row("StackFrameFunctionName", id=str(identity), name=name)
    for identity, (file, function, line) in LOCATIONS.items():
        builder.row(
            "StackFrameFileLocation", id=str(identity), file_name_id=file, function_name_id=function, line_number=line
        )  # fmt: skip
    for identity, (location, parent) in FRAMES.items():
        builder.row("StackFrame", id=str(identity), file_location_id=location, parent_frame_id=str(parent))
    for pcore in (0, 1):
        builder.row(
            "KernelStackFrames", stack_frame_id=8, fully_qualified_function_name="flash_attention", pcore_idx=pcore,
            file_path="kernels/attention.py", line_number=88,
        )  # fmt: skip
        builder.row(
            "KernelStackFrames", stack_frame_id=9, fully_qualified_function_name="attention_kernel", pcore_idx=pcore,
            parent_stack_frame_id=8, file_path="kernels/attention.py", line_number=42,
        )  # fmt: skip
        for number in range(4):
            builder.row(
                "KernelIterationVariables", iteration_variable_id=20 + number, variable_name="i", pcore_idx=pcore,
                variable_value=number, parent_iteration_variable_id=30, file_path="kernels/attention.py", line_number=40,
            )  # fmt: skip
            builder.row(
                "KernelInstructions", kernel_instruction_name=f"I-{number}:77", stack_frame_id=9, stack_frame_depth=2,
                iteration_variables_id=20 + number, iteration_variable_depth=2, pcore_idx=pcore,
                file_path="kernels/attention.py", line_number=42,
            )  # fmt: skip
        builder.row(
            "KernelIterationVariables", iteration_variable_id=30, variable_name="j", variable_value=1, pcore_idx=pcore,
            file_path="kernels/attention.py", line_number=38,
        )  # fmt: skip


def _metadata(story: Story) -> None:
    builder = story.builder
    first, last = story.window
    builder.row(
        "Metadata", profile_schema_version="7.4.0", ntff_version=5, num_physical_cores=2, vnc_enabled=True,
        first_hw_timestamp=first, last_hw_timestamp=last, first_ts=str(first), last_ts=str(last),
        dma_ddr_bandwidth=DMA_BYTES_PER_S, num_dma_engines_per_neuroncore=16, hbm_ddr_bandwidth=HBM_BYTES_PER_S,
        tensor_engine_num_rows=ROWS, tensor_engine_num_cols=COLS, tensor_engine_clock_freq=TENSOR_GHZ,
        vector_engine_clock_freq=0.96, vector_engine_num_channels=128, scalar_engine_clock_freq=1.2,
        scalar_engine_num_channels=128, gpsimd_engine_clock_freq=1.2, gpsimd_engine_num_channels=128,
        neuroncore_clock_freq=1.2, ticks_per_nanosec=1, instance_type="synthetic", compiler_version="0", neuroncore_idx=0,
        neuron_device_idx=0, is_simulation=False, profile_name=builder.name,
    )  # fmt: skip
    builder.row(
        "NeffHeader",
        network_name="story_graph",
        uuid="0" * 8,
        hash="feed",
        logical_neuroncore_count=1,
        pcore_count_per_lnc=2,
    )
    builder.row(
        "ExecutionInfo", execution_index=0, neff_name="story_graph", execution_start_ts=first, execution_end_ts=last,
        num_subgraphs=1, row_count=len(builder.rows["Instruction"]),
    )  # fmt: skip
    builder.row("TensorInfo", variable_name="weights0", type="WEIGHT", format="bfloat16", shape="[4096,8]", size=TILE_BYTES,
                load_to_sbuf_avg_size_bytes=TILE_BYTES, load_to_sbuf_total_size_bytes=TILE_BYTES * TILES * 2,
                load_to_sbuf_dma_count=TILES * 2, load_to_sbuf_repeat_factor=float(TILES * 2), pcore_idx=0)  # fmt: skip
    builder.row(
        "TensorInfo",
        variable_name="kv0",
        type="IN",
        shape="[32,256]",
        size=SMALL_BYTES * SMALL_DMAS,
        pcore_idx=0,
    )
    builder.row("Warning", message="Dynamic DMA traces are missing", category="dma")
    builder.row(
        "Error",
        description="NaN in output",
        error_type_id=3,
        timestamp=first + 9000,
        type="Errors",
        pcore_idx=0,
    )
    builder.row("ThrottleSummary", nc_idx=0, throttle_type="power", throttle_active_time_ns=12_000,
                max_achievable_util_with_throttling_percent=0.9)  # fmt: skip
    for number in range(5):
        at = first + number * 10_000
        builder.row(
            "DmaUsage",
            timestamp=at,
            current_throughput=1e9 * number,
            total_transfer_bytes=1000 * number,
            pcore_idx=0,
        )
        builder.row(
            "SbufUsage",
            timestamp=at,
            avg_util_percent=0.125 * number,
            partition_0_util_percent=0.0625,
            pcore_idx=0,
        )
        builder.row("PendingDma", timestamp=at, value=number, pcore_idx=0)
    total_ns = last - first
    spill_saves = (TILES + 2) // 3
    hbm_read = 2 * (
        TILES * TILE_BYTES + spill_saves * SPILL_BYTES + ATTENTION_ROUNDS * SMALL_DMAS * SMALL_BYTES
    )
    hbm_write = 2 * spill_saves * SPILL_BYTES
    hardware = sum(story.flops.values())
    builder.row(
        "Summary", total_time=total_ns / 1e9, hardware_flops=hardware, transpose_flops=sum(story.transpose_flops.values()),
        model_flops=0, hbm_read_bytes=hbm_read, hbm_write_bytes=hbm_write,
        spill_save_bytes=hbm_write, spill_reload_bytes=2 * spill_saves * SPILL_BYTES,
        weight_queue_bytes=2 * TILES * TILE_BYTES, weight_size_bytes=TILE_BYTES,
        inputs_and_weights_size_bytes=TILE_BYTES + SMALL_BYTES * SMALL_DMAS,
        tensor_engine_active_time=total_ns / 1e9 * 0.25, tensor_engine_active_time_percent=0.25,
    )  # fmt: skip


def write_story(folder: Path, **changes: Any) -> tuple[Story, Path]:
    """Plant the story and write it under `folder`, Instruction in two files."""
    story = plant(**changes)
    return story, story.builder.write(folder, split={"Instruction": 2})
