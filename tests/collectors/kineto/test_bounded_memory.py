"""With too little memory for anything, imports give the tables that they give with enough: arrays lie in files then."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from explorer.collectors.import_trace import import_trace
from explorer.collectors.kineto import distinct, importer, light, reading, resident, writing
from explorer.collectors.kineto.compiled import compiled_scratch
from explorer.collectors.kineto.resident import Resident
from explorer.collectors.options import ImportOptions
from explorer.store.reader import RunReader
from tests.traces import trace

needs_files = pytest.mark.skipif(
    compiled_scratch() is None, reason="not built: no C compiler, or no Linux: memory has no bound there"
)
REAL = (
    "nvidia/param_linear_rtx2080ti.json.gz",
    "nvidia/kineto_resnet50_v100_mem_stacks.pt.trace.json.gz",
    "nvidia/hta_nccl_parser_config.json.gz",
    "amd/tl_mi300_resnet_act_checkpoint.json.gz",
    "ascend/multirank_level1/rank0_trace_view.json",
    "mtia/hta_mtia_inference_rank_0.json.gz",
    "generic/catapult_nestable_async.json",
    "odd/truncated_json.json",
)


@pytest.fixture
def used(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Arrays of any size may lie in files; the most bytes that did, import by import."""
    found: list[int] = []
    close = Resident.close

    def watched(self: Resident) -> None:
        if self.active:
            found.append(self.state()[1])
        close(self)

    monkeypatch.setattr(Resident, "close", watched)
    monkeypatch.setattr(importer, "Resident", partial(Resident, least_bytes=1))
    return found


def tables(path: Path, run: Path, memory_bytes: int = 1 << 30) -> dict[str, pa.Table]:
    """All tables of the run made of a trace. Which rows share a part depends on the memory, and so does their order."""
    reader = RunReader(import_trace(path, run, options=ImportOptions(memory_bytes=memory_bytes)).directory)
    (manifest,) = reader.manifests.values()
    found = {}
    for name in sorted({part.table for part in manifest.parts}):
        rows = reader.read(name)
        keys = [field.name for field in rows.schema if not pa.types.is_nested(field.type)]
        found[name] = rows.sort_by([(key, "ascending") for key in keys])
    found["manifest"] = pa.table({"text": [json.dumps([manifest.counts, manifest.losses, manifest.repairs])]})
    return found


def same(few: dict[str, pa.Table], many: dict[str, pa.Table]) -> None:
    assert few.keys() == many.keys()
    for name, rows in many.items():
        assert few[name].equals(rows), name


@needs_files
@pytest.mark.parametrize("name", REAL)
def test_real_traces_become_the_same_run_whatever_the_memory(
    name: str, tmp_path: Path, used: list[int]
) -> None:
    path = trace(name)
    many = tables(path, tmp_path / "many")
    assert used == []
    few = tables(path, tmp_path / "few", memory_bytes=1 << 20)
    same(few, many)
    (most,) = used
    assert most >= 8 * many["events"].num_rows


WORDS = st.sampled_from(("aten::add", "ProfilerStep#1", "Optimizer.step#SGD.step", "hipLaunchKernel", ""))
EVENTS = st.lists(
    st.fixed_dictionaries(
        {
            "ph": st.sampled_from("XXXXXBEbesfiCM"),
            "cat": st.sampled_from(
                ("cpu_op", "kernel", "cuda_runtime", "ac2g", "fwdbwd", "user_annotation", "python_function")
            ),
            "name": WORDS,
            "pid": st.integers(0, 1),
            "tid": st.integers(0, 2),
            "ts": st.integers(0, 60),
            "dur": st.one_of(st.integers(-1, 20), st.none()),
            "id": st.integers(0, 3),
            "args": st.dictionaries(
                st.sampled_from(("correlation", "External id", "Sequence number", "Fwd thread id", "stream")),
                st.integers(0, 4),
                max_size=3,
            ),
        }
    ),
    min_size=1,
    max_size=60,
)


@needs_files
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    events=EVENTS,
    memory_bytes=st.integers(1, 1 << 28),
    least_bytes=st.integers(1, 400),
    size=st.integers(1, 30),
    chunk=st.integers(400, 4000),
)
def test_any_trace_becomes_the_same_run_whatever_the_memory(
    tmp_path_factory: pytest.TempPathFactory,
    events: list[dict[str, Any]],
    memory_bytes: int,
    least_bytes: int,
    size: int,
    chunk: int,
) -> None:
    folder = tmp_path_factory.mktemp("any")
    path = folder / "t.json"
    path.write_text(json.dumps({"traceEvents": events}))
    many = tables(path, folder / "many")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(importer, "Resident", partial(Resident, least_bytes=least_bytes))
        patch.setattr(reading, "CHUNK_BYTES", chunk)
        patch.setattr(light, "_JOINED_ROWS", size)
        patch.setattr(light, "_LARGE_BYTES", 8 * size)
        patch.setattr(distinct, "HASHED", size)
        patch.setattr(writing, "GROUP_ROWS", size)
        patch.setattr(writing, "GROUP_CHUNKS", 1 + size % 3)
        patch.setattr(writing, "PART_EDGES", size)
        few = tables(path, folder / "few", memory_bytes)
    same(few, many)


@needs_files
def test_what_is_given_up_comes_back() -> None:
    """In a process of its own: 640 MB of numbers, of which no more than some 100 MB may be resident."""
    script = """
        import contextvars
        import numpy as np
        from concurrent.futures import ThreadPoolExecutor
        from explorer.collectors.kineto.resident import Resident

        def resident_mib(name="VmRSS"):
            with open("/proc/self/status") as file:
                return next(int(line.split()[1]) >> 10 for line in file if line.startswith(name))

        before = resident_mib()
        outside = np.zeros(1 << 20)
        with Resident((before + 100) << 20, 0) as bound:
            bound.begin()
            arrays = [np.arange(8 << 20) + number for number in range(10)]
            with ThreadPoolExecutor(1) as pool:
                other = pool.submit(contextvars.copy_context().run, np.ones, 8 << 20).result()
            arrays.append(np.concatenate([arrays.pop(0), np.empty(0, np.int64)]))
            assert bound.state()[0] == 11 * 64 << 20, bound.state()
            for number, values in enumerate(arrays[:-1], 1):
                assert values[0] == number and values[-1] == number + (8 << 20) - 1
                assert int(values.sum()) == (8 << 20) * ((8 << 20) - 1) // 2 + number * (8 << 20)
            assert other.sum() == 8 << 20
            bound._part.drop()
            assert resident_mib() < before + 60
            assert (arrays[-1] == np.arange(8 << 20)).all()
            grown = arrays[0].copy()
            grown.resize(9 << 20, refcheck=False)
            assert grown[(8 << 20) - 1] == 1 + (8 << 20) - 1 and grown[-1] == 0
            del grown
        # They stay when the bound ends, and go when nobody needs them.
        assert (arrays[-1] == np.arange(8 << 20)).all()
        now, most, times = bound.state()
        assert (now, times > 5) == (11 * 64 << 20, True), (now, times)
        del arrays, values, other
        assert bound.state()[0] == 0
        peak = resident_mib("VmHWM") - before
        assert peak < 400, peak
        assert np.ones(8 << 20).sum() == 8 << 20 and bound.state()[0] == 0
        print("good")
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True)
    assert (done.stdout, done.stderr[-2000:]) == ("good\n", "")


@needs_files
def test_a_temporary_folder_without_room_is_one_line(tmp_path: Path) -> None:
    script = """
        import resource, sys
        from explorer.collectors.kineto import importer, resident
        from functools import partial

        importer.Resident = partial(resident.Resident, least_bytes=1 << 16)
        resident.ROW_BYTES = 1 << 40
        # No file may grow beyond this, as on a disk that is full.
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, 1 << 16))
        from explorer.cli.main import main

        sys.argv[1:] = ["import", sys.argv[1], "-o", sys.argv[2]]
        sys.exit(main())
    """
    path = tmp_path / "t.json"
    row = '{"ph":"X","cat":"cpu_op","name":"a","pid":1,"tid":1,"ts":%d,"dur":1}'
    path.write_text('{"traceEvents":[' + ",\n".join(row % n for n in range(20_000)) + "]}")
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), str(path), str(tmp_path / "run")],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2, done.stderr[-2000:]
    assert "Traceback" not in done.stderr
    assert "The temporary folder" in done.stderr
    assert "--memory-mib" in done.stderr
    assert not (tmp_path / "run").exists()


def test_small_traces_stay_in_memory(tmp_path: Path, used: list[int]) -> None:
    path = tmp_path / "t.json"
    path.write_text('{"traceEvents":[{"ph":"X","cat":"cpu_op","name":"a","pid":1,"tid":1,"ts":1,"dur":1}]}')
    assert tables(path, tmp_path / "run")["events"].num_rows == 1
    assert used == []


@pytest.mark.parametrize(
    ("memory_mib", "rows", "files"),
    [(1024, 2_900_000, False), (1024, 3_000_000, True), (384, 10, True), (4096, 9_406_297, False)],
)
def test_arrays_go_to_files_where_linking_needs_more_than_there_is(
    memory_mib: int, rows: int, files: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[bool] = []
    monkeypatch.setattr(Resident, "begin", lambda self: begun.append(True))
    held = reading.OWN_BYTES + 2 * reading.THREAD_BYTES
    Resident(memory_mib << 20, held).expect(rows)
    assert bool(begun) is files


@given(values=st.lists(st.integers(-3, 40), max_size=60), hashed=st.integers(1, 20))
def test_distinct_numbers_keep_the_order_of_their_first_appearance(values: list[int], hashed: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(distinct, "HASHED", hashed)
        found, codes = distinct.distinct(np.array(values, np.int64))
    assert found.tolist() == list(dict.fromkeys(values))
    assert found[codes].tolist() == values


def test_one_import_of_a_process_at_a_time_is_bounded() -> None:
    if compiled_scratch() is None:
        pytest.skip("not built")
    with Resident(1 << 40, 0) as first, Resident(1 << 40, 0) as second:
        first.begin()
        second.begin()
        assert (first.active, second.active) == (True, False)
        second.close()
        assert np._core.multiarray.get_handler_name(np.empty(1 << 20)) == "explorer_scratch"  # type: ignore[attr-defined]
    assert not first.active
    assert not resident._lock.locked()
