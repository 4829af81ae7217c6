"""How fast a large Neuron profile is imported and searched for bottlenecks.

The profile is made up (seeded, true to the official schema, nothing measured on hardware): instructions on five engines of
two physical cores, DMA blocks with packets, dependencies, debug information. Prints JSON: rows per second of the import,
peak memory of the process, and seconds of all Neuron rules.

    python benchmarks/neuron_speed.py --instructions 5000000 --folder /tmp/neuron-speed
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

ENGINES = ("Tensor", "Vector", "Scalar", "GpSimd", "Sync")
OPCODES = {
    "Tensor": ("MATMUL", "LDWEIGHTS"),
    "Vector": ("TENSOR_TENSOR", "TENSOR_COPY", "REDUCE"),
    "Scalar": ("ACTIVATE", "COPY"),
    "GpSimd": ("IOTA", "MEMSET"),
    "Sync": ("DMA_TRIGGER",),
}
FILES = 4
ROW_GROUP = 250_000


def make_profile(folder: Path, instructions: int, seed: int = 11) -> Path:
    """Write a profile with this many instructions, a quarter as many packets, and a tenth as many dependencies."""
    from tests.neuron_fixture.builder import arrow_schema
    from tests.neuron_fixture.story import plant

    # Small tables (metadata, debug information, summary) come from the planted story.
    story = plant(seed, "big")
    for table in ("Instruction", "DmaPacket", "DmaPacketAggregated", "Flow"):
        story.builder.rows.pop(table)
    target = story.builder.write(folder)
    numbers = np.random.default_rng(seed)
    per_file = instructions // FILES
    for number in range(FILES):
        path = target / f"Instruction_{number}.parquet"
        with pq.ParquetWriter(path, arrow_schema("Instruction")) as writer:
            for first in range(0, per_file, ROW_GROUP):
                rows = min(ROW_GROUP, per_file - first)
                writer.write_table(_instructions(number * per_file + first, rows, numbers))
    packets = instructions // 4
    blocks = packets // 8
    pq.write_table(_packets(packets, blocks), target / "DmaPacket.parquet")
    pq.write_table(_blocks(blocks), target / "DmaPacketAggregated.parquet")
    flows = instructions // 10
    pq.write_table(
        _full(
            "Flow",
            flows,
            in_id=np.arange(flows, dtype=np.int64) % blocks,
            out_id=numbers.integers(0, instructions, flows),
            in_table=_words(np.zeros(flows, np.int32), ("DmaPacketAggregated",)),
            out_table=_words(np.zeros(flows, np.int32), ("Instruction",)),
            dependency_type=_words(np.zeros(flows, np.int32), ("semaphore",)),
        ),
        target / "Flow.parquet",
    )
    return target


def _words(codes: Any, words: tuple[str, ...]) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32)), pa.array(words)).cast(pa.string())


def _full(table: str, rows: int, **columns: Any) -> pa.Table:
    from explorer.model.neuron_schema import official_tables
    from tests.neuron_fixture.builder import DEFAULTS, arrow_schema

    arrays = []
    for field, column in zip(arrow_schema(table), official_tables()[table].columns.values()):
        if column.name in columns:
            values = columns[column.name]
            arrays.append((values if isinstance(values, pa.Array) else pa.array(values)).cast(field.type))
        elif column.required:
            arrays.append(pa.repeat(pa.scalar(DEFAULTS[column.type], field.type), rows))
        else:
            arrays.append(pa.nulls(rows, field.type))
    return pa.table(arrays, schema=arrow_schema(table))


def _instructions(first: int, rows: int, numbers: np.random.Generator) -> pa.Table:
    ids = np.arange(first, first + rows, dtype=np.int64)
    engine = ids % 5
    start = 1_000_000 + ids * 40 + numbers.integers(0, 30, rows)
    duration = numbers.integers(40, 190, rows)
    names, codes = [], np.zeros(rows, np.int32)
    for number, name in enumerate(ENGINES):
        chosen = engine == number
        codes[chosen] = len(names) + ids[chosen] // 5 % len(OPCODES[name])
        names += OPCODES[name]
    tensor = engine == 0
    flops = np.where(tensor, 2 * 128 * 128 * 128, 0)
    frames = ("[4]", "[3]", "[2, 3]", "[1]")
    return _full(
        "Instruction",
        rows,
        start_ts=start,
        end_ts=start + duration,
        duration_ns=duration,
        engine=_words(engine, ENGINES),
        pcore_idx=ids // 5 % 2,
        opcode=_words(codes, tuple(names)),
        operands=_words(ids % 997, tuple(f"dst=[{n}] src=[{n + 1}] f32 128x{n}" for n in range(997))),
        id=ids,
        pc=ids * 64,
        bir_id=pa.array(ids).cast(pa.string()),
        raw_bir_id=ids,
        layer=_words(ids // 1000 % 64, tuple(f"model/layers.{n}/mlp" for n in range(64))),
        hlo_name=_words(ids // 100 % 512, tuple(f"dot.{n}" for n in range(512))),
        stack_frame_ids=pa.array(np.array(frames, object)[ids // 100 % 4], pa.string(), mask=ids % 10 == 9),
        bir_debug_info_source_location=_words(
            ids // 100 % 300, tuple(f"/opt/app/model.py:{n + 1}" for n in range(300))
        ),
        evt_wait_time_ns=numbers.integers(0, 200, rows),
        raw_flops=flops,
        adjusted_flops=flops,
        tensor_instruction_type=pa.array(np.array(["REGULAR"] * rows, object), pa.string(), mask=~tensor),
        hbm_read_bytes=numbers.integers(0, 4096, rows),
    )


def _packets(rows: int, blocks: int) -> pa.Table:
    ids = np.arange(rows, dtype=np.int64)
    start = 1_000_000 + ids * 160
    return _full(
        "DmaPacket",
        rows,
        start_ts=start,
        end_ts=start + 150,
        duration_ns=np.full(rows, 150),
        id=ids,
        pcore_idx=ids % 2,
        packet_idx=(ids % 8).astype(np.int32),
        packet_aggregation_id=ids // 8 % blocks,
        transfer_bytes=np.full(rows, 2048),
        read_bytes=np.full(rows, 2048),
        write_bytes=np.full(rows, 2048),
        queue_type=_words(ids // 8 % 2, ("data", "software_dynamic")),
        queue_name=_words(ids // 8 % 2, ("qSyncIO0", "qPoolDynamic0")),
    )


def _blocks(rows: int) -> pa.Table:
    ids = np.arange(rows, dtype=np.int64)
    start = 1_000_000 + ids * 1280
    return _full(
        "DmaPacketAggregated",
        rows,
        start_ts=start,
        end_ts=start + 1270,
        duration_ns=np.full(rows, 1270),
        id=ids,
        pcore_idx=ids % 2,
        queue_name=_words(ids % 2, ("qSyncIO0", "qPoolDynamic0")),
        queue_type=_words(ids % 2, ("data", "software_dynamic")),
        op=_words(ids * 0, ("copy",)),
        transfer_bytes=np.full(rows, 16384),
        source=_words(ids * 0, ("[[INPUT]]",)),
        dest=_words(ids * 0, ("[[SB]]",)),
    )


def _rows(target: Path) -> int:
    return sum(pq.read_metadata(path).num_rows for path in target.glob("*.parquet"))


def _child(step: str, source: str, run: str) -> dict[str, float]:
    """Run one step in a process of its own, so that peak memory is its own."""
    output = subprocess.run(
        [sys.executable, __file__, "--step", step, "--source", source, "--run", run],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    result: dict[str, float] = json.loads(output.splitlines()[-1])
    return result


def _step(step: str, source: str, run: str) -> None:
    begin = time.perf_counter()
    extra: dict[str, Any] = {}
    if step == "import":
        from explorer.collectors.neuron.session_import import import_session

        extra["events"] = import_session(source, run).events
    else:
        from explorer.analysis.findings import all_rules, find
        from explorer.analysis.run import open_run

        rules = [rule for rule in all_rules() if rule.name.startswith("neuron_")]
        extra["rules"] = len(rules)
        extra["findings"] = len(find(open_run(run), rules=rules))
    extra["seconds"] = round(time.perf_counter() - begin, 2)
    usage = resource.getrusage(resource.RUSAGE_SELF)
    extra["cpu_seconds"] = round(usage.ru_utime + usage.ru_stime, 2)
    extra["peak_mb"] = round(usage.ru_maxrss / 1024)
    print(json.dumps(extra))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--instructions", type=int, default=5_000_000)
    parser.add_argument("--folder", default="/tmp/neuron-speed")
    parser.add_argument("--step", choices=("import", "rules"))
    parser.add_argument("--source")
    parser.add_argument("--run")
    options = parser.parse_args()
    if options.step:
        _step(options.step, options.source, options.run)
        return
    folder = Path(options.folder) / str(options.instructions)
    if not folder.exists():
        make_profile(folder, options.instructions)
    rows = _rows(folder / "big@latest")
    run = f"{folder}-run-{os.getpid()}"
    imported = _child("import", str(folder), run)
    result: dict[str, Any] = {
        "rows": rows,
        "instructions": options.instructions,
        "import": imported
        | {
            "rows_per_second": round(rows / imported["seconds"]),
            "instructions_per_second": round(options.instructions / imported["seconds"]),
        },
        "rules": _child("rules", "", run),
    }
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
