"""Real dumps of torch's flight recorder: two gloo ranks, of which one never arrives at the last call."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from explorer.analysis.ranks.desync import desynchronised
from explorer.analysis.run import open_run
from explorer.cli.main import main
from explorer.collectors.import_trace import import_trace
from explorer.model.errors import InputError
from explorer.store.reader import RunReader

PROGRAM = """\
import multiprocessing, os, socket, sys, time
import torch
import torch.distributed as dist
from torch._C import _distributed_c10d as c10d

def run(rank, folder, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), RANK=str(rank), WORLD_SIZE="2")
    dist.init_process_group("gloo", rank=rank, world_size=2)
    t = torch.ones(4)
    for _ in range(3):
        dist.all_reduce(t)
    time.sleep(1)  # the recorder notes an end a moment after the call has returned
    if rank == 0:
        work = dist.all_reduce(t, async_op=True)  # nobody answers
    time.sleep(1)
    open(f"{folder}/pickles/trace_rank_{rank}", "wb").write(c10d._dump_fr_trace(True, True, False))
    open(f"{folder}/json/trace_rank_{rank}.json", "wb").write(c10d._dump_fr_trace_json(True, False))
    open(f"{folder}/done_{rank}", "w").close()
    while not all(os.path.exists(f"{folder}/done_{one}") for one in (0, 1)):
        time.sleep(0.01)
    os._exit(0)

if __name__ == "__main__":
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=run, args=(rank, sys.argv[1], port)) for rank in (0, 1)]
    [process.start() for process in processes]
    [process.join() for process in processes]
"""
LAST_LINE = next(n for n, text in enumerate(PROGRAM.splitlines(), 1) if "nobody answers" in text)


@pytest.fixture(scope="module")
def dumps(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch = pytest.importorskip("torch")
    if not torch.distributed.is_gloo_available():
        pytest.skip("this torch has no gloo")
    folder = tmp_path_factory.mktemp("dumps")
    (folder / "pickles").mkdir()
    (folder / "json").mkdir()
    (folder / "hang.py").write_text(PROGRAM)
    subprocess.run(
        [sys.executable, "-W", "ignore", str(folder / "hang.py"), str(folder)],
        check=True,
        timeout=120,
        env={**os.environ, "TORCH_FR_BUFFER_SIZE": "100", "OMP_NUM_THREADS": "1"},
    )
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("form", ["pickles", "json"])
def test_who_did_not_arrive(
    dumps: Path, form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = import_trace([str(dumps / form)], tmp_path / "run")
    assert (report.ranks, report.formats, report.events, report.lost) == ([0, 1], ["flight_recorder"], 7, 0)
    (found,) = desynchronised(open_run(report.directory).engine)
    assert (found.kind, found.sequence, found.arrived, found.absent, found.unknown) == (
        "absent",
        4,
        (0,),
        (1,),
        (),
    )
    if form == "pickles":
        # The JSON form has no frames.
        assert (os.path.basename(found.file or ""), found.line) == ("hang.py", LAST_LINE)
    assert main(["ranks", report.directory]) == 0
    assert capsys.readouterr().out.startswith(
        "Rank 1 did not arrive at call 4 of group 0 (default_pg), in which rank 0 wait"
    )
    health = RunReader(report.directory).read("health", ranks=[0]).to_pylist()
    assert [(row["kind"], row["count"]) for row in health if row["severity"] == "warning"] == [
        ("unfinished_communication", 1)
    ]


def entry(number: int, name: str) -> dict:
    return {
        "process_group": ("0", "default_pg"),
        "collective_seq_id": number,
        "p2p_seq_id": 0,
        "profiling_name": f"nccl:{name}",
        "time_created_ns": 1_700_000_000_000_000_000 + number,
        "time_discovered_started_ns": None,
        "time_discovered_completed_ns": None,
        "input_sizes": [[2, 3]],
        "input_dtypes": ["Float"],
        "state": "completed",
        "is_p2p": False,
        "frames": [{"name": "step", "filename": "/job/train.py", "line": 7}],
    }


def written(folder: Path, calls: dict[int, list[dict]], size: int) -> Path:
    folder.mkdir()
    for rank, entries in calls.items():
        document = {
            "version": "2.10",
            "pg_config": {"0": {"name": "0", "desc": "default_pg", "ranks": str(list(range(size)))}},
            "pg_status": {},
            "entries": entries,
        }
        (folder / f"nccl_trace_rank_{rank}").write_bytes(pickle.dumps(document, protocol=2))
    return folder


def test_calls_that_do_not_agree_and_ranks_without_a_dump(tmp_path: Path) -> None:
    calls = {
        0: [entry(1, "all_reduce"), entry(2, "all_reduce")],
        1: [entry(1, "all_reduce"), entry(2, "all_gather")],
    }
    report = import_trace([str(written(tmp_path / "in", calls, 3))], tmp_path / "run")
    (found,) = desynchronised(open_run(report.directory).engine)
    assert (found.kind, found.sequence, found.operations) == (
        "mismatch",
        2,
        {0: "all_reduce", 1: "all_gather"},
    )
    assert found.unknown == (2,)
    rows = RunReader(report.directory).read("collectives", ranks=[0]).to_pylist()
    assert [(row["element_count"], row["size_bytes"], row["group_size"]) for row in rows] == [(6, 24, 3)] * 2


def test_what_the_ring_has_dropped_is_no_disagreement(tmp_path: Path) -> None:
    """Rank 0's older calls were overwritten; both stand at call 5."""
    calls = {
        0: [entry(5, "all_reduce")],
        1: [entry(n, "all_gather" if n == 3 else "all_reduce") for n in range(1, 6)],
    }
    report = import_trace([str(written(tmp_path / "in", calls, 2))], tmp_path / "run")
    assert desynchronised(open_run(report.directory).engine) == []


class Evil:
    def __reduce__(self) -> tuple:
        return os.system, ("true",)


def test_a_pickle_with_code_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "nccl_trace_rank_0"
    path.write_bytes(
        pickle.dumps({"pg_config": {}, "pg_status": {}, "collective_seq_id": 1, "entries": [Evil()]})
    )
    with pytest.raises(InputError, match="would run code"):
        import_trace([str(path)], tmp_path / "run")


def test_json_without_entries_is_an_input_error(tmp_path: Path) -> None:
    path = tmp_path / "dump.json"
    path.write_text(json.dumps({"pg_config": {}, "pg_status": {}, "entries": 3}))
    with pytest.raises(InputError, match="no flight recorder dump"):
        import_trace([str(path)], tmp_path / "run")
