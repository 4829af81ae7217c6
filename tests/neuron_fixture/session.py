"""A made-up session: two processes of one instance, a system profile, and one device profile each.

Process 500 runs compiled: one op, one runtime call, one execution a step. Process 600 runs eager: three ops of two lines
share an execution in each step, and one op falls back to the host and has no device rows.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.neuron_fixture.builder import ProfileBuilder
from tests.neuron_fixture.story import DEVICE_EPOCH, Story, plant

HOST_EPOCH = 1_790_000_000_000_000_000
INSTANCE = "i-made-up"
PROCESSES = (500, 600)
STEP_NS = 2_000_000
STEPS = 2
TINY_NS = 2_000
LOAD_NS = 100_000


@dataclass
class Session:
    """Rows of the system profile, the device stories, and the clock offset planted per process."""

    system: ProfileBuilder
    stories: dict[int, Story]
    offsets: dict[int, int] = field(default_factory=dict)
    drift_ns: int = 0


def plant_session(
    *, sync_points: bool = True, worker_gids: bool = True, tiny: int = 0, loads: bool = False
) -> Session:
    """The whole session. Without sync points, only the durations of executions relate the clocks.

    `tiny` adds that many executions of 2 us, 10 us apart, to every step; `loads` a model load of 100 us to the second.
    """
    system = ProfileBuilder("system")
    session = Session(system, {})
    for rank, process in enumerate(PROCESSES):
        story = plant(7 + rank, f"i-made-up_pid_{process}_nc_{rank}")
        length = story.window[1] - story.window[0]
        session.stories[process] = story
        first = HOST_EPOCH + 10_000 * rank
        run_at = first + 300_000
        offset = run_at - DEVICE_EPOCH
        session.offsets[process] = offset
        gid = rank if worker_gids else None
        system.row(
            "DeviceProfileList", device_profile_name=f"i-made-up_pid_{process}_nc_{rank}", instance_id=INSTANCE,
            process_id=process, nc_id=rank, session_id=0,
        )  # fmt: skip
        for step in range(STEPS):
            begin = first + step * STEP_NS
            _step(system, process, rank, gid, step, begin, length, sync_points, offset)
            for number in range(tiny):
                _hardware(system, process, rank, gid, begin + 800_000 + number * 12_000, TINY_NS)
            if loads and step:
                system.timed(
                    "SystemProfileEvents", begin + 700_000, LOAD_NS, id=system.next_id("SystemProfileEvents"),
                    name="model_load", trace_event_source="neuron_rt", instance_id=INSTANCE, process_id=process,
                    thread_id=2, worker_gid=gid,
                )  # fmt: skip
        # The profile records the first execution; a second window follows it in ExecutionInfo.
        story.builder.rows["ExecutionInfo"][0] |= {
            "execution_start_ts": story.window[0], "execution_end_ts": story.window[1],
        }  # fmt: skip
    for number in range(3):
        at = HOST_EPOCH + number * 1_000_000
        system.row("CpuUsage", timestamp=at, util_percent=25.0 * number, cpu_id="0", instance_id=INSTANCE)
        system.row(
            "HostMemUsage", timestamp=at, used_bytes=10**9 + number, used_percent=12.5, instance_id=INSTANCE
        )
        system.row(
            "SystemProfileHbmUsage", timestamp=at, total_bytes=10**9, weights_bytes=7 * 10**8, device_idx=0, hbm_idx=0,
            instance_id=INSTANCE,
        )  # fmt: skip
    system.row(
        "SystemProfileMetadata", first_ts="", last_ts="", first_ts_ns=str(HOST_EPOCH),
        last_ts_ns=str(HOST_EPOCH + STEPS * STEP_NS), ntff_version=5, hbm_capacity_bytes=96 << 30,
    )  # fmt: skip
    return session


def _step(
    system: ProfileBuilder,
    process: int,
    rank: int,
    gid: int | None,
    step: int,
    begin: int,
    length: int,
    sync: bool,
    offset: int,
) -> None:
    def event(
        name: str,
        source: str,
        start: int,
        duration: int,
        thread: int,
        flows: list[str] | None = None,
        core: int | None = None,
        **extra: object,
    ) -> None:
        system.timed(
            "SystemProfileEvents", start, duration, id=system.next_id("SystemProfileEvents"), name=name,
            trace_event_source=source, instance_id=INSTANCE, process_id=process, thread_id=thread, nc_idx=core,
            worker_gid=gid, flow_id=flows, extra_attributes_json=json.dumps(extra) if extra else None,
        )  # fmt: skip

    mark = f"{process}-{step}"
    event(f"ProfilerStep#{step}", "framework", begin, STEP_NS - 1000, 1)
    event("train.py(10): train_step", "framework", begin + 1000, STEP_NS - 5000, 1)
    if process == PROCESSES[0]:
        event("model.py(14): forward", "framework", begin + 2000, 200_000, 1)
        event("aten::mm", "framework", begin + 3000, 150_000, 1, [f"{mark}-a"])
    else:
        event("model.py(14): forward", "framework", begin + 2000, 90_000, 1)
        event("aten::mm", "framework", begin + 3000, 20_000, 1, [f"{mark}-a"])
        event("aten::add", "framework", begin + 30_000, 20_000, 1, [f"{mark}-a"])
        event("model.py(40): loss", "framework", begin + 100_000, 90_000, 1)
        event("aten::sum", "framework", begin + 101_000, 20_000, 1, [f"{mark}-a"])
        event("aten::nonzero", "framework", begin + 130_000, 40_000, 1)
    event("nrt_execute", "neuron_rt", begin + 220_000, 60_000, 2, [f"{mark}-a", f"{mark}-b"], size_bytes=4096)
    event("kbl_exec_wait", "neuron_rt", begin + 285_000, length, 2)
    start = begin + 300_000
    event("nc_exec_running", "neuron_hw", start, length, 0, [f"{mark}-b"], core=rank, model_id=1)
    if sync:
        device = start - offset
        event("timestamp_sync_point", "neuron_hw", start, 0, 0, None, core=rank, nc_timestamp_ns=device)


def _hardware(
    system: ProfileBuilder, process: int, rank: int, gid: int | None, start: int, length: int
) -> None:
    system.timed(
        "SystemProfileEvents", start, length, id=system.next_id("SystemProfileEvents"), name="nc_exec_running",
        trace_event_source="neuron_hw", instance_id=INSTANCE, process_id=process, thread_id=0, nc_idx=rank, worker_gid=gid,
    )  # fmt: skip


def write_session(folder: Path, **changes: Any) -> Session:
    """Plant and write the session as a data path of Neuron Explorer: profiles/global/<name>@latest/."""
    session = plant_session(**changes)
    target = folder / "profiles" / "global"
    session.system.write(target)
    for story in session.stories.values():
        story.builder.write(target, split={"Instruction": 2, "DmaPacket": 2})
    return session
