"""Busy time, overlap, idle causes, bounds and utilisation of the planted story against plain Python arithmetic."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest

from explorer.analysis.result import Result
from explorer.analysis.run import Run, open_run
from explorer.collectors.neuron.session_import import import_session
from tests.neuron_fixture.intervals import Interval, intersect, length, subtract, union
from tests.neuron_fixture.story import (
    ATTENTION_ROUNDS,
    CC_HIDDEN_NS,
    CC_NS,
    HBM_BYTES_PER_S,
    MATMUL_FLOPS,
    PACKET_BYTES,
    SMALL_BYTES,
    SMALL_DMAS,
    SPILL_BYTES,
    TILES,
    TRANSPOSES,
    Story,
    write_story,
)


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> tuple[Story, Run]:
    folder = tmp_path_factory.mktemp("engines")
    story, _ = write_story(folder / "source")
    return story, open_run(import_session(folder / "source", folder / "run").directory)


@pytest.fixture(scope="module", params=["trusted", "sandbox"])
def ask(request: pytest.FixtureRequest, opened: tuple[Story, Run]) -> Callable[[str], Result]:
    return opened[1].engine.sql if request.param == "trusted" else opened[1].sql


def _compute(story: Story, pcore: int) -> list[Interval]:
    return [span for (core, _), spans in story.engines.items() if core == pcore for span in spans]


def _dma(story: Story, pcore: int) -> list[Interval]:
    return [span for (core, _), spans in story.packets.items() if core == pcore for span in spans]


def test_engine_time_is_the_union_of_its_instructions(
    opened: tuple[Story, Run], ask: Callable[[str], Result]
) -> None:
    story, _ = opened
    rows = ask("SELECT core, engine, active_ns, instruction_ns, instructions, window_ns FROM engines").rows()
    assert {(row["core"], row["engine"]): row["active_ns"] for row in rows} == {
        key: length(spans) for key, spans in story.engines.items()
    }
    assert {(row["core"], row["engine"]): row["instruction_ns"] for row in rows} == {
        key: sum(end - start for start, end in spans) for key, spans in story.engines.items()
    }
    tensor = next(row for row in rows if row["core"] == 0 and row["engine"] == "Tensor")
    assert tensor["active_ns"] < tensor["instruction_ns"]
    assert tensor["window_ns"] == story.window[1] - story.window[0]


def test_overlap_sums_to_the_window_and_hides_half_the_collective(
    opened: tuple[Story, Run], ask: Callable[[str], Result]
) -> None:
    story, _ = opened
    total = story.window[1] - story.window[0]
    for row in ask("SELECT core, sum(duration_ns) AS ns FROM neuron_overlap GROUP BY core").rows():
        assert row["ns"] == total
    row = ask(
        """SELECT sum(duration_ns) FILTER (WHERE collective) AS whole,
                  sum(duration_ns) FILTER (WHERE collective AND NOT (tensor OR vector OR scalar OR gpsimd)) AS exposed
           FROM neuron_overlap WHERE core = 0"""
    ).rows()[0]
    assert row == {"whole": CC_NS, "exposed": CC_NS - CC_HIDDEN_NS}
    together = ask(
        """SELECT sum(duration_ns) AS ns FROM neuron_overlap
           WHERE core = -1 AND collective AND NOT (tensor OR vector OR scalar OR gpsimd)"""
    ).rows()[0]
    both = _compute(story, 0) + _compute(story, 1)
    assert together["ns"] == subtract(story.collectives, both)


def test_exposed_transfers_and_idle_time_by_core(
    opened: tuple[Story, Run], ask: Callable[[str], Result]
) -> None:
    story, _ = opened
    for core in (0, 1):
        row = ask(
            f"""SELECT sum(duration_ns) FILTER (WHERE dma AND NOT (tensor OR vector OR scalar OR gpsimd)) AS exposed,
                       sum(duration_ns) FILTER (WHERE tensor AND throttle) AS throttled,
                       sum(duration_ns) FILTER (WHERE NOT (tensor OR vector OR scalar OR gpsimd)) AS idle
                FROM neuron_overlap WHERE core = {core}"""
        ).rows()[0]
        compute = _compute(story, core)
        assert row["exposed"] == subtract(_dma(story, core), compute)
        assert row["idle"] == story.window[1] - story.window[0] - length(compute)
        if core == 0:
            assert row["throttled"] == length(intersect(story.throttles, story.engines[0, "Tensor"]))


def _tensor_gaps(story: Story) -> list[Interval]:
    spans = union(story.engines[0, "Tensor"])
    return [(a[1], b[0]) for a, b in pairwise(spans)]


def test_idle_time_has_the_planted_causes(opened: tuple[Story, Run], ask: Callable[[str], Result]) -> None:
    story, _ = opened
    rows = ask(
        "SELECT cause, blocker, method, gaps, idle_ns FROM neuron_idle_causes WHERE core = 0 AND engine = 'Tensor'"
    ).rows()
    found = {(row["cause"], row["method"]): row for row in rows}
    # Each tile after the first of a spill waits for the reload; the others for their input.
    reloads = TILES // 3
    assert found["spill", "flow"]["gaps"] == reloads
    assert found["spill", "flow"]["blocker"] == "qSpillReload0"
    assert found["input", "flow"]["gaps"] == TILES - reloads
    assert found["dma", "flow"]["gaps"] == ATTENTION_ROUNDS
    assert found["dma", "flow"]["blocker"] == "qPoolDynamic0"
    assert found["collective", "coincidence"]["gaps"] == 1
    gaps = defaultdict(int)
    first = story.regions["attention"]
    for start, end in _tensor_gaps(story):
        if first[0] <= end <= first[1]:
            gaps["attention"] += end - start
    assert found["dma", "flow"]["idle_ns"] == gaps["attention"]
    whole = sum(row["idle_ns"] for row in rows)
    assert whole == story.window[1] - story.window[0] - length(story.engines[0, "Tensor"])


def test_bounds(opened: tuple[Story, Run], ask: Callable[[str], Result]) -> None:
    story, _ = opened
    row = ask("SELECT * FROM neuron_bounds WHERE core = 0").rows()[0]
    total = story.window[1] - story.window[0]
    tensor = length(story.engines[0, "Tensor"])
    memory = length(_dma(story, 0))
    moved = (
        TILES * 16 * PACKET_BYTES
        + 2 * (TILES // 3) * SPILL_BYTES
        + ATTENTION_ROUNDS * SMALL_DMAS * SMALL_BYTES
    )
    assert (row["total_ns"], row["memory_ns"], row["compute_ns"]) == (total, memory, tensor)
    # 32-bit floats of the profile hold the bandwidth and the clock, as the schema has them.
    bandwidth = float(np.float32(435e9))
    assert row["memory_ideal_ns"] == round(moved / bandwidth * 1e9)
    flop_per_ns = 128 * 128 * 2 * float(np.float32(2.4))
    matmul = story.flops[0]
    assert row["compute_ideal_ns"] == round(matmul / flop_per_ns)
    assert row["compute_useful_ns"] == round((matmul - TRANSPOSES * MATMUL_FLOPS) / flop_per_ns)
    assert (row["bound"], row["busiest_engine"]) == ("memory", "Tensor")
    assert row["speedup_limit"] == pytest.approx(total / memory)


def test_utilization(opened: tuple[Story, Run], ask: Callable[[str], Result]) -> None:
    story, _ = opened
    row = ask("SELECT * FROM neuron_utilization").rows()[0]
    seconds = (story.window[1] - story.window[0]) / 1e9
    peak = 128 * 128 * 2 * float(np.float32(2.4)) * 1e9
    hardware = sum(story.flops.values())
    transposes = sum(story.transpose_flops.values())
    assert row["hfu"] == pytest.approx(hardware / (2 * peak * seconds))
    assert row["mfu_instructions"] == pytest.approx((hardware - transposes) / (2 * peak * seconds))
    bandwidth = float(np.float32(HBM_BYTES_PER_S))
    assert row["mbu"] == pytest.approx(
        (row["hbm_read_bytes"] + row["hbm_write_bytes"]) / (bandwidth * seconds)
    )
    assert row["ridge"] == pytest.approx(peak / bandwidth)
    assert row["mfu"] is None  # a kernel has no model flops: unknown, not zero


def test_lines_carry_transfers_memory_use_and_waits(
    opened: tuple[Story, Run], ask: Callable[[str], Result]
) -> None:
    story, _ = opened
    rows = {(row["file"], row["line"]): row for row in ask("SELECT * FROM neuron_lines").rows()}
    attention = rows["kernels/attention.py", 42]
    assert attention["instructions"] == 2 * ATTENTION_ROUNDS
    assert attention["tensor_ns"] == 2 * ATTENTION_ROUNDS * 100
    assert attention["transfers"] == 2 * ATTENTION_ROUNDS
    assert attention["transfer_bytes"] == 2 * ATTENTION_ROUNDS * SMALL_BYTES
    copies = rows["/opt/app/model.py", 15]
    assert copies["psum_bytes"] == 2 * TILES * 128 * 512 * 4
    assert sum(row["instructions"] for row in rows.values()) == pytest.approx(
        len(story.builder.rows["Instruction"])
    )
    assert sum(row["engine_ns"] for row in rows.values()) == pytest.approx(sum(story.line_ns.values()))


def test_kernel_iterations(opened: tuple[Story, Run], ask: Callable[[str], Result]) -> None:
    rows = ask("SELECT * FROM neuron_iterations ORDER BY value").rows()
    assert [(r["variable"], r["value"], r["outer_variable"], r["outer_value"]) for r in rows] == [
        ("i", number, "j", 1) for number in range(4)
    ]
    assert {row["instructions"] for row in rows} == {2 * ATTENTION_ROUNDS // 4}


def test_views_are_not_offered_where_no_profile_is(tmp_path_factory: pytest.TempPathFactory) -> None:
    from explorer.store.writer import RunWriter

    folder = tmp_path_factory.mktemp("plain")
    with RunWriter(folder / "run") as writer:
        writer.write("tracks", [{"track_id": 0, "kind": "thread", "label": "main"}])
    run = open_run(folder / "run")
    names = run.engine.relations.names()
    assert not [name for name in names if name.startswith("neuron") or name == "engines"]
