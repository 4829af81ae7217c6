"""The computed interval tables against a count of every microsecond."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from explorer.analysis.run import Run, open_run
from explorer.analysis.time_windows import time_windows
from tests.analysis.run_builder import EPOCH_NS, RunBuilder

STRONGEST_FIRST = (
    "gc",
    "compile",
    "data",
    "io",
    "op",
    "runtime",
    "communication",
    "sync",
    "python",
)
CLASS_OF = {"collective": "communication", "annotation": "python", "step": "python"}
CALLED = ("runtime", "sync", "compile", "gc", "io", "collective")
EVENT = st.tuples(
    st.sampled_from(("op", "data", "io", "gc", "compile", "runtime", "collective", "sync", "annotation")),
    st.integers(0, 40),
    st.integers(0, 15),
    st.booleans(),
)
STATE = st.tuples(st.integers(0, 3), st.integers(0, 6), st.integers(0, 3), st.booleans())
CASE = st.tuples(st.lists(EVENT, min_size=1, max_size=9), st.lists(STATE, max_size=7))


def built(folder: Path, cases: list) -> tuple[Run, list[dict]]:
    """Each case is a rank; returns the run and per rank its events and states in microseconds."""
    held = []
    for rank, (events, steps) in enumerate(cases):
        build = RunBuilder(folder, rank)
        threads = (build.main, build.track("thread", "cpu", None, "other"))
        sites = [None, *(build.line(10 + i, f"f{i}()") for i in range(1, 4))]
        for category, start, duration, other in events:
            build.event(category, "x", start, duration, track=threads[other])
        free, states = {False: 0, True: 0}, []
        for pause, duration, site, other in steps:
            start = free[other] + pause
            free[other] = start + duration
            build.state(sites[site], start, duration, track=threads[other])
            states.append((threads[other], start, start + duration, sites[site]))
        build.write()
        held.append({"events": [(c, threads[o], s, s + d) for c, s, d, o in events], "states": states})
    return open_run(folder), held


@settings(max_examples=6)
@given(st.lists(CASE, min_size=8, max_size=8))
def test_equal_a_count_of_every_microsecond(cases: list) -> None:
    with TemporaryDirectory() as folder:
        run, held = built(Path(folder) / "run", cases)
        segments = run.view("host_segments").rows()
        lines = run.view("line_states").rows()
        run.close()
    for rank, rows in enumerate(held):
        expected: Counter = Counter()
        for now in range(70):
            running = {CLASS_OF.get(c, c) for c, _, start, end in rows["events"] if start <= now < end}
            if any(site and start <= now < end for _, start, end, site in rows["states"]):
                running.add("python")
            if running:
                expected[now, next(name for name in STRONGEST_FIRST if name in running)] += 1
        found: Counter = Counter()
        for row in segments:
            if row["rank"] == rank:
                for now in range((row["start_ns"] - EPOCH_NS) // 1000, (row["end_ns"] - EPOCH_NS) // 1000):
                    found[now, row["class"]] += 1
        assert found == expected
        by_line: Counter = Counter()
        for track, first, last, site in rows["states"]:
            for now in range(first, last):
                open_ = {c for c, t, start, end in rows["events"] if t == track and start <= now < end}
                part = "op_ns" if "op" in open_ else "other_ns" if open_ & set(CALLED) else "python_ns"
                by_line[track, site, part] += 1000
                by_line[track, site, "host_ns"] += 1000
        given_ = Counter(
            {
                (row["track_id"], row["site_id"], part): row[part]
                for row in lines
                if row["rank"] == rank
                for part in ("op_ns", "other_ns", "python_ns", "host_ns")
            }
        )
        assert +given_ == by_line


def test_time_outside_steps_leaves_out_pauses_and_steps(tmp_path: Path) -> None:
    build = RunBuilder(tmp_path / "run")
    build.op("aten::a", 0, 5)
    build.op("aten::b", 95, 5)
    build.steps(2, 20, start=10)
    run = build.open()
    windows = time_windows(run.engine)[0]
    run.close()
    assert windows.numbers.tolist() == [1, 2, 0]
    assert windows.lengths_ns.tolist() == [20_000, 20_000, 60_000]
    assert ((windows.outside.start_ns - EPOCH_NS) // 1000).tolist() == [0, 50]
    assert ((windows.outside.end_ns - EPOCH_NS) // 1000).tolist() == [10, 100]
    assert np.array_equal(windows.starts_ns, [EPOCH_NS + 10_000, EPOCH_NS + 30_000, EPOCH_NS])


def test_the_catalogue_computes_nothing_and_answers_stay_right(tmp_path: Path) -> None:
    build = RunBuilder(tmp_path / "run")
    build.op("aten::a", 0, 7)
    run = build.open()
    assert {"host_segments", "breakdown", "rank_extent"} <= {
        row["name"] for row in run.sql("SHOW TABLES").rows()
    }
    assert run.sql('SELECT "class" AS what, end_ns - start_ns AS ns FROM host_segments').rows() == [
        {"what": "op", "ns": 7000}
    ]
    assert run.sql("SELECT compute_ns FROM breakdown").rows() == [{"compute_ns": 7000}]
    assert len(run.sql("SHOW TABLES")) > 0
    run.close()
