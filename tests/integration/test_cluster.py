"""A real Dask scheduler with two worker processes: the same run as on one machine, whatever dies in between."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from explorer.analysis.rank_rollups import roll_up_ranks
from explorer.analysis.ranks.job_report import job_report
from explorer.analysis.rollup import rolled_up
from explorer.analysis.run import open_run
from explorer.cli.main import main
from explorer.collectors import cluster_import
from explorer.collectors.cluster_import import RankTask, import_on_cluster, import_rank
from explorer.collectors.import_trace import ImportReport, import_trace
from explorer.collectors.options import ImportOptions
from explorer.store.reader import RunReader
from explorer.store.writer import RunWriter
from tests.integration.kineto_ranks import LATE, write_ranks

distributed = pytest.importorskip("distributed", reason="the extra distributed is not installed")
pytestmark = pytest.mark.slow

BUCKET = "runs"


@pytest.fixture(scope="module")
def store() -> Iterator[None]:
    """An S3-compatible server on loopback; its address reaches the workers through the environment."""
    pytest.importorskip("s3fs")
    server_module = pytest.importorskip("moto.server", reason="moto's server is not installed")
    server = server_module.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    wanted = {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    import s3fs

    s3fs.S3FileSystem(skip_instance_cache=True).mkdir(BUCKET)
    yield
    server.stop()
    for name, value in before.items():
        os.environ.pop(name) if value is None else os.environ.update({name: value})


@pytest.fixture(scope="module")
def scheduler(store: None) -> Iterator[str]:
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, host="127.0.0.1"
    ) as cluster:
        yield cluster.scheduler_address


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cluster") / "traces"
    write_ranks(folder)
    return folder


@pytest.fixture(scope="module")
def alone(traces: Path) -> str:
    """The same traces on one machine."""
    directory = str(traces.parent / "alone")
    import_trace([str(traces)], directory)
    return directory


def content(directory: str) -> dict[str, Any]:
    """Every table of a run, row by row, and the job's report without its path."""
    reader = RunReader(directory)
    tables = {
        name: sorted(json.dumps(row, sort_keys=True, default=str) for row in reader.read(name).to_pylist())
        for name in ("events", "tracks", "steps", "collectives", "edges", "sites", "source_rows")
    }
    report = job_report(open_run(directory)).to_dict()
    report.pop("run")
    return {"ranks": reader.ranks, "report": json.loads(json.dumps(report, default=str)), **tables}


def test_import_and_roll_ups_equal_one_machine(
    scheduler: str, traces: Path, alone: str, tmp_path: Path
) -> None:
    done = import_on_cluster([str(traces)], tmp_path / "run", scheduler)
    assert (done.ranks, done.exit_code, done.formats) == ([0, 1, 2, 3], 0, ["kineto"])
    assert roll_up_ranks(done.directory, scheduler=scheduler) == []
    reader = RunReader(done.directory)
    assert rolled_up(reader) == set(reader.ranks)
    assert content(done.directory) == content(alone)


def test_from_an_object_store_to_an_object_store(
    scheduler: str, traces: Path, alone: str, capsys: pytest.CaptureFixture[str]
) -> None:
    import s3fs

    s3fs.S3FileSystem().put(str(traces), f"{BUCKET}/input", recursive=True)
    run = f"s3://{BUCKET}/job"
    assert main(["import", f"s3://{BUCKET}/input", "-o", run, "--scheduler", scheduler]) == 0
    assert capsys.readouterr().err.splitlines()[-1] == f"run: {run}"
    assert content(run) == content(alone)
    assert main(["ranks", run, "--scheduler", scheduler, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["stragglers"][0]["rank"] == LATE
    inputs = RunReader(run).manifests[0].inputs[0]
    assert inputs["path"] == f"s3://{BUCKET}/input/rank0.json"


def dying_import(task: RankTask, where: str, options: ImportOptions) -> ImportReport:
    """On its first try: rank 0's worker is killed with parts but no manifest written, rank 1's after it finished."""
    marker = Path(where).parent / f"died-{task.rank}"
    if task.rank < 2 and not marker.exists():
        marker.touch()
        if task.rank == 0:
            RunWriter(where, rank=0).write("events", [_event(number) for number in range(100)])
        else:
            import_rank(task, where, options)
        os.kill(os.getpid(), signal.SIGKILL)
    return import_rank(task, where, options)


def _event(number: int) -> dict[str, Any]:
    return {
        "event_id": number,
        "track_id": 1,
        "category": "op",
        "name": "half written",
        "start_ns": number,
        "duration_ns": 1,
        "self_ns": 1,
    }


def test_killed_workers_lose_and_double_nothing(
    scheduler: str, traces: Path, alone: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_import, "import_rank", dying_import)
    done = import_on_cluster([str(traces)], tmp_path / "run", scheduler)
    assert {path.name for path in tmp_path.iterdir()} == {"run", "died-0", "died-1"}
    assert (done.ranks, done.exit_code) == ([0, 1, 2, 3], 0)
    assert done.events == sum(
        part.rows
        for m in RunReader(done.directory).manifests.values()
        for part in m.parts
        if part.table == "events"
    )
    assert content(done.directory) == content(alone)


def test_ranks_are_added_to_a_run_on_an_object_store(
    scheduler: str, traces: Path, alone: str, tmp_path: Path
) -> None:
    run = f"s3://{BUCKET}/added"
    import_on_cluster([str(traces / f"rank{rank}.json") for rank in (0, 3)], run, scheduler)
    done = import_on_cluster([str(traces)], run, scheduler, options=ImportOptions(add=True))
    assert done.ranks == [1, 2]
    assert [reason for _, reason in done.skipped] == [
        "the run holds rank 0 already",
        "the run holds rank 3 already",
    ]
    assert content(run) == content(alone)


def test_one_bad_input_costs_only_itself(scheduler: str, traces: Path, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for path in traces.iterdir():
        (tmp_path / "in" / path.name).write_bytes(path.read_bytes())
    (tmp_path / "in" / "rank2.json").write_text('{"traceEvents": 7}')
    done = import_on_cluster([str(tmp_path / "in")], tmp_path / "run", scheduler)
    assert (done.ranks, done.exit_code) == ([0, 1, 3], 4)
    assert [os.path.basename(path) for path, _ in done.skipped] == ["rank2.json"]


def test_no_scheduler_is_an_input_error(
    capsys: pytest.CaptureFixture[str], traces: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("explorer.store.cluster.CONNECT_S", 1)
    assert main(["import", str(traces), "-o", str(tmp_path / "run"), "--scheduler", "tcp://127.0.0.1:9"]) == 3
    assert "No Dask scheduler answers at tcp://127.0.0.1:9" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()
