"""Make a run of many ranks from a real one of a few: the same steps over and over, on ranks with clocks of their own.

    python benchmarks/build_many_ranks.py SOURCE_RUN OUT --ranks 64 --events 500000

Each rank repeats one of the source's ranks, step after step, until it has that many events; calls of a group become calls
of all ranks. Every host has a clock offset and drift, and every repetition starts a little early or late, by a generator
with a fixed seed: the same command makes the same run. What is not changed is the form of the data: names, nesting, lines,
sizes and the order of calls are those of the capture.
"""

from __future__ import annotations

import argparse
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from explorer.model.tables import TABLES
from explorer.store.reader import RunReader
from explorer.store.writer import RunWriter

TIMED = {
    "events": ("start_ns",),
    "host_states": ("start_ns",),
    "steps": ("start_ns",),
    "counters": ("timestamp_ns",),
    "memory_events": ("timestamp_ns",),
}
IDS = ("event_id", "parent_id", "launch_id", "op_id", "forward_id", "source_id", "target_id")
REPEATED = (
    "events",
    "event_sites",
    "host_states",
    "steps",
    "collectives",
    "edges",
    "counters",
    "memory_events",
)
ONCE = ("tracks", "sites", "stacks", "modules", "devices", "sources")
RANKS_PER_HOST = 8
OFFSET_NS, DRIFT, JITTER_NS = 3_000_000, 2e-5, 2_000
SEED = 20260


def whole_steps(reader: RunReader, rank: int) -> tuple[dict[str, pa.Table], int, int]:
    """A rank's tables cut to its steps from the fifth on (the first hold the start of the capture and its first pause),
    their first moment, and how long they take."""
    steps = reader.read("steps", ranks=[rank]).sort_by("start_ns")
    steps = steps.slice(4 if len(steps) > 6 else 0)
    begin = steps.column("start_ns")[0].as_py()
    end = steps.column("start_ns")[-1].as_py() + steps.column("duration_ns")[-1].as_py()
    tables = {}
    for name in REPEATED:
        table = reader.read(name, ranks=[rank])
        if name in TIMED:
            at = table.column(TIMED[name][0])
            table = table.filter(pc.and_(pc.greater_equal(at, begin), pc.less(at, end)))
        tables[name] = table
    kept = tables["events"].column("event_id")
    for name in ("event_sites", "collectives", "memory_events"):
        tables[name] = tables[name].filter(pc.is_in(tables[name].column("event_id"), kept))
    edges = tables["edges"]
    inside = pc.and_(pc.is_in(edges.column("source_id"), kept), pc.is_in(edges.column("target_id"), kept))
    tables["edges"] = edges.filter(inside)
    return tables, begin, end - begin


def write_rank(source: str, out: str, rank: int, ranks: int, events: int) -> int:
    """Write one rank; returns its events."""
    reader = RunReader(source)
    own = reader.ranks[rank % len(reader.ranks)]
    parts = [whole_steps(reader, one) for one in reader.ranks]
    tables, begin, _ = parts[reader.ranks.index(own)]
    period = max(part[2] for part in parts)
    times = max(1, round(events / max(1, len(tables["events"]))))
    highest = int(pc.max(tables["events"].column("event_id")).as_py()) + 1
    first_step = int(pc.min(tables["steps"].column("step")).as_py())
    count = len(tables["steps"])
    host = np.random.default_rng([SEED, rank // RANKS_PER_HOST])
    offset, drift = int(host.integers(-OFFSET_NS, OFFSET_NS)), float(host.uniform(-DRIFT, DRIFT))
    jitter = np.random.default_rng([SEED, 1, rank]).integers(0, JITTER_NS, times)
    shift = np.arange(times, dtype=np.int64) * (period + JITTER_NS) + jitter

    def clock(at: np.ndarray) -> np.ndarray:
        """True time on this host's clock."""
        return at + offset + np.rint(drift * (at - begin)).astype(np.int64)

    with RunWriter(out, rank=rank, made_by="capture") as writer:
        manifest = reader.manifests[own]
        writer.manifest.host = {**manifest.host, "hostname": f"host{rank // RANKS_PER_HOST}"}
        writer.manifest.world_size = ranks
        writer.manifest.cost = manifest.cost
        writer.manifest.attributes = {**manifest.attributes, "synthetic": "build_many_ranks.py"}
        for name in ONCE:
            table = reader.read(name, ranks=[own])
            if len(table):
                writer.write(name, table.drop_columns(["rank"]) if "rank" in table.column_names else table)
        for name, table in tables.items():
            if not len(table):
                continue
            big = pa.concat_tables([table] * times).combine_chunks()
            place = np.repeat(np.arange(times, dtype=np.int64), len(table))
            for column in big.column_names:
                if column in IDS:
                    big = _changed(big, column, lambda old, at=place: old + at * highest)
                elif column == "step":
                    big = _changed(big, column, lambda old, at=place: old - first_step + at * count)
            for column in TIMED.get(name, ()):
                if "duration_ns" in big.column_names:
                    start = big.column(column).to_numpy() - 0
                    end = clock(start + big.column("duration_ns").to_numpy() + shift[place])
                    start = clock(start + shift[place])
                    big = _set(big, column, start)
                    big = _set(big, "duration_ns", end - start)
                else:
                    big = _changed(big, column, lambda old, at=place: clock(old + shift[at]))
            if name == "collectives":
                big = _set(big, "group_size", np.full(len(big), ranks))
                everyone = pa.array([str(list(range(ranks)))] * len(big), pa.string())
                big = big.set_column(big.schema.get_field_index("group_ranks"), "group_ranks", everyone)
            writer.write(
                name, big.select([c for c in TABLES[name].names if c in big.column_names and c != "rank"])
            )
    return len(tables["events"]) * times


def _changed(table: pa.Table, column: str, change) -> pa.Table:
    old = table.column(column)
    values = change(pc.fill_null(old, 0).to_numpy().astype(np.int64))
    array = pa.array(values, mask=np.asarray(pc.is_null(old))).cast(table.schema.field(column).type)
    return table.set_column(table.schema.get_field_index(column), column, array)


def _set(table: pa.Table, column: str, values: np.ndarray) -> pa.Table:
    kind = table.schema.field(column).type
    return table.set_column(table.schema.get_field_index(column), column, pa.array(values).cast(kind))


def build(source: str, out: str, ranks: int, events: int, processes: int = 2) -> int:
    """Write all ranks; returns the events of all."""
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        jobs = [pool.submit(write_rank, source, out, rank, ranks, events) for rank in range(ranks)]
        return sum(job.result() for job in jobs)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source")
    parser.add_argument("out")
    parser.add_argument("--ranks", type=int, default=64)
    parser.add_argument("--events", type=int, default=500_000, help="per rank")
    given = parser.parse_args()
    began = time.perf_counter()
    total = build(given.source, given.out, given.ranks, given.events)
    print(f"{given.ranks} ranks, {total:,} events in {time.perf_counter() - began:.1f} s: {given.out}")
