"""Ranks, outputs, the cache, and the verbs import and cache."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path
from typing import Any

import pytest

from explorer.cli.main import main
from explorer.collectors import run_cache
from explorer.collectors.import_trace import cached_run, import_trace
from explorer.collectors.kineto import reading
from explorer.collectors.new_run import new_run
from explorer.collectors.options import ImportOptions
from explorer.collectors.run_cache import RunCache
from explorer.model.errors import InputError, UsageError
from explorer.store.reader import RunReader
from tests.traces import trace


def text(rank: int | None = None, count: int = 3, shift: int = 0) -> str:
    head = {} if rank is None else {"distributedInfo": {"backend": "nccl", "rank": rank, "world_size": 4}}
    events = [
        {"ph": "X", "cat": "cpu_op", "name": f"op{i}", "pid": 1, "tid": 1, "ts": shift + 10 * i, "dur": 5}
        for i in range(count)
    ]
    return json.dumps({**head, "traceEvents": events})


def ranks_of(directory: str) -> dict[int, str]:
    reader = RunReader(directory)
    return {rank: manifest.inputs[0]["rank_from"] for rank, manifest in reader.manifests.items()}


def test_ranks_from_the_trace_then_the_name_then_the_order(tmp_path: Path) -> None:
    folder = tmp_path / "ranks"
    folder.mkdir()
    (folder / "a.json").write_text(text(rank=3))
    (folder / "trace_rank-1.json").write_text(text())
    (folder / "worker0_step_12.json.gz").write_bytes(gzip.compress(text().encode()))
    (folder / "z.json").write_text(text())
    (folder / "notes.txt").write_text("no trace")
    (folder / "config.json").write_text('{"batch": 4}')
    report = import_trace(folder, tmp_path / "run")
    assert report.ranks == [0, 1, 2, 3]
    assert ranks_of(report.directory) == {0: "file name", 1: "file name", 2: "order", 3: "distributedInfo"}
    reader = RunReader(report.directory)
    assert reader.manifests[3].world_size == 4
    kinds = {(row["rank"], row["kind"]) for row in reader.read("health").to_pylist()}
    assert (2, "rank_by_order") in kinds
    assert reader.read("events").num_rows == 12


def test_the_same_rank_twice_is_kept_apart(tmp_path: Path) -> None:
    for name in ("a.json", "b.json"):
        (tmp_path / name).write_text(text(rank=0))
    report = import_trace([tmp_path / "a.json", tmp_path / "b.json"], tmp_path / "run")
    assert ranks_of(report.directory) == {0: "distributedInfo", 1: "order"}


def test_an_unreadable_rank_costs_only_itself(tmp_path: Path) -> None:
    (tmp_path / "rank0.json").write_text(text())
    (tmp_path / "rank1.json").write_text('{"schemaVersion": 1, "oth')
    report = import_trace([tmp_path / "rank0.json", tmp_path / "rank1.json"], tmp_path / "run")
    assert (report.ranks, report.exit_code) == ([0], 4)
    assert [os.path.basename(path) for path, _ in report.skipped] == ["rank1.json"]


def test_a_finished_run_is_never_overwritten(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(text())
    first, second = (import_trace(tmp_path / "a.json", tmp_path / "run").directory for _ in range(2))
    assert (os.path.basename(first), os.path.basename(second)) == ("run", "run-2")


def test_outputs_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(text())
    (tmp_path / "file").write_text("x")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").write_text("x")
    for name in ("file", "full", "file/run"):
        with pytest.raises(UsageError):
            import_trace(tmp_path / "a.json", tmp_path / name)
    with pytest.raises(UsageError):
        import_trace(
            [tmp_path / "a.json", tmp_path / "a.json"], tmp_path / "run", options=ImportOptions(rank=1)
        )
    with pytest.raises(InputError):
        import_trace(tmp_path / "full", tmp_path / "run")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.json", "file", "full"]


def test_worker_processes_give_the_same_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = trace("amd/tl_normalization_layer_test.json.gz")
    alone = RunReader(import_trace(path, tmp_path / "alone").directory)
    monkeypatch.setattr(reading, "PARALLEL_BYTES", 1)
    monkeypatch.setattr(reading, "MANY_ROWS", 1)
    monkeypatch.setattr("explorer.collectors.kineto.splitter.TraceText.chunk_bytes", 1 << 18)
    shown: list[tuple[int, int | None]] = []
    report = import_trace(
        path,
        tmp_path / "many",
        options=ImportOptions(processes=2),
        progress=lambda done, total: shown.append((done, total)),
    )
    many = RunReader(report.directory)
    for table in ("events", "tracks", "memory_events", "source_rows", "sites", "stacks", "modules", "edges"):

        def ordered(reader: RunReader, table: str = table) -> list[Any]:
            return sorted(json.dumps(row, sort_keys=True) for row in reader.read(table).to_pylist())

        assert ordered(alone) == ordered(many), table
    assert shown
    assert all(0 <= done <= (total or 0) for done, total in shown)


def test_the_cache_is_keyed_by_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEURON_EXPLORER_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "a.json"
    path.write_text(text())
    first = cached_run(path)
    made = os.stat(os.path.join(first, "manifests", "rank-0.json")).st_mtime_ns
    assert cached_run(path) == first
    os.utime(path, (1, 1))
    assert cached_run(path) == first
    assert os.stat(os.path.join(first, "manifests", "rank-0.json")).st_mtime_ns == made
    path.write_text(text(count=4))
    second = cached_run(path)
    assert second != first
    assert RunReader(second).read("events").num_rows == 4
    assert [entry.sources for entry in RunCache().entries()] == [[str(path)]] * 2
    count, freed = RunCache().clear()
    assert count == 2
    assert freed > 0
    assert RunCache().entries() == []


def test_verbs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NEURON_EXPLORER_CACHE", str(tmp_path / "cache"))
    (tmp_path / "step.pt.trace.json").write_text(text())
    assert main(["import", "step.pt.trace.json"]) == 0
    assert capsys.readouterr().err.rstrip().endswith("run: runs/step")
    assert main(["import", "step.pt.trace.json", "-o", "out", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "neuron-explorer/import/1"
    assert (document["events"], document["ranks"], document["exit_code"]) == (3, [0], 0)
    (tmp_path / "cut.json").write_text(text()[:-40])
    assert main(["import", "cut.json", "-o", "cut"]) == 4
    assert "lost or repaired" in capsys.readouterr().err
    assert main(["import", "none.json"]) == 3
    assert main(["ops", "step.pt.trace.json"]) == 0
    capsys.readouterr()
    assert main(["cache", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["entries"]) == 1
    assert main(["cache", "clear"]) == 0
    assert main(["cache", "shrink"]) == 2


@pytest.mark.parametrize("bad", [b"\x00\x01binary", b"", b'{"schemaVersion": 1, "oth', None])
def test_a_named_file_that_cannot_be_read_costs_only_itself(bad: bytes | None, tmp_path: Path) -> None:
    (tmp_path / "base.json").write_text(text())
    if bad is not None:
        (tmp_path / "bad.json").write_bytes(bad)
    report = import_trace([tmp_path / "base.json", tmp_path / "bad.json"], tmp_path / "run")
    assert (report.ranks, report.exit_code) == ([0], 4)
    assert [os.path.basename(path) for path, _ in report.skipped] == ["bad.json"]
    with pytest.raises(InputError, match=r"bad\.json"):
        import_trace([tmp_path / "bad.json", tmp_path / "bad.json"], tmp_path / "none")
    assert not (tmp_path / "none").exists()


def test_damaged_gzip_is_imported_and_said(tmp_path: Path) -> None:
    data = bytearray(gzip.compress(text().encode()))
    data[-8] ^= 0xFF
    (tmp_path / "a.json.gz").write_bytes(data)
    report = import_trace(tmp_path / "a.json.gz", tmp_path / "run")
    assert (report.events, report.exit_code) == (3, 4)
    kinds = RunReader(report.directory).read("health")["kind"].to_pylist()
    assert "damaged_container" in kinds


def test_two_imports_at_once_into_one_directory(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(text())
    made = import_trace(tmp_path / "a.json", tmp_path / "made").directory
    with new_run(tmp_path / "run") as place:
        shutil.copytree(made, place.building.root, dirs_exist_ok=True)
        first = import_trace(tmp_path / "a.json", tmp_path / "run")
        with new_run(tmp_path / "run") as other:
            os.makedirs(os.path.join(other.building.root, "manifests"))
    assert [os.path.basename(p) for p in (first.directory, other.directory, place.directory)] == [
        "run",
        "run-2",
        "run-3",
    ]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.json", "made", "run", "run-2", "run-3"]


@pytest.mark.parametrize("rank", [-1, 1 << 31, 99_999_999_999])
def test_a_rank_that_cannot_be(rank: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.json").write_text(text())
    assert main(["import", str(tmp_path / "a.json"), "-o", str(tmp_path / "run"), "--rank", str(rank)]) == 2
    assert "Traceback" not in capsys.readouterr().err
    with pytest.raises(UsageError, match="no rank"):
        ImportOptions(rank=rank)


@pytest.mark.parametrize(
    ("said", "rank"), [("1099511627776", 0), ("-1", 0), ("1.5", 0), ("true", 0), ('"3"', 3), ("2.0", 2)]
)
def test_ranks_as_traces_say_them(said: str, rank: int, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(text(rank=77).replace("77", said))
    report = import_trace(tmp_path / "a.json", tmp_path / "run")
    assert report.ranks == [rank]
    kinds = RunReader(report.directory).read("health")["kind"].to_pylist()
    assert ("rank_not_used" in kinds) == (rank == 0)


def test_a_member_that_cannot_be_read_at_all_costs_only_itself(tmp_path: Path) -> None:
    path = tmp_path / "ranks.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for rank in (0, 1):
            archive.writestr(f"rank{rank}.json", text(count=400))
        second = archive.getinfo("rank1.json").header_offset
    data = bytearray(path.read_bytes())
    data[second + 40 : second + 60] = b"\xff" * 20
    path.write_bytes(data)
    report = import_trace(path, tmp_path / "run")
    assert (report.ranks, report.exit_code) == ([0], 4)
    ((name, reason),) = report.skipped
    assert name == f"{path}:rank1.json"
    assert "damaged" in reason


KILLED = """
import os, signal, sys
from explorer.collectors.claimed_folder import scratch_folder
from explorer.collectors.new_run import new_run
with new_run(sys.argv[1]) as place:
    scratch = scratch_folder()
    for folder in (place.building.root, scratch.path):
        with open(os.path.join(folder, "part.parquet"), "wb") as file:
            file.write(b"half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def killed_import(target: Path, temporary: Path) -> None:
    """An import into `target` that is killed in the middle."""
    environment = {**os.environ, "TMPDIR": str(temporary)}
    done = subprocess.run([sys.executable, "-c", KILLED, str(target)], env=environment, check=False)
    assert done.returncode == -signal.SIGKILL


def test_what_a_killed_import_left_goes_with_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs, temporary = tmp_path / "runs", tmp_path / "tmp"
    runs.mkdir()
    temporary.mkdir()
    (tmp_path / "a.json").write_text(text())
    killed_import(runs / "run", temporary)
    assert [path.name.endswith(".importing") for path in runs.iterdir()] == [True]
    assert len(list(temporary.iterdir())) == 1
    (runs / ".notes").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    with new_run(runs / "other") as living:
        import_trace(tmp_path / "a.json", runs / "run")
        names = sorted(path.name for path in runs.iterdir())
        assert names == sorted([".notes", os.path.basename(living.building.root), "run"])
    assert list(temporary.iterdir()) == []


def test_clearing_the_cache_takes_leftovers_and_leaves_who_is_importing(tmp_path: Path) -> None:
    cache = RunCache(str(tmp_path / "cache"))
    runs = tmp_path / "cache" / "runs"
    runs.mkdir(parents=True)
    with new_run(runs / "living") as living:
        killed_import(runs / "abc", tmp_path)
        assert len(list(runs.iterdir())) == 2
        assert cache.clear() == (0, 4)
        assert [path.name for path in runs.iterdir()] == [os.path.basename(living.building.root)]


def test_other_content_of_the_same_size_and_time_is_another_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.json"
    path.write_text(text())
    before = os.stat(path)
    first = cached_run(path, cache_dir=str(tmp_path / "cache"))
    other = text().replace("op1", "xy1")
    path.write_text(other)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert os.stat(path).st_size == before.st_size
    second = cached_run(path, cache_dir=str(tmp_path / "cache"))
    assert "xy1" in RunReader(second).read("events")["name"].to_pylist()
    # Clocks of file systems are coarse: two changes within one tick look alike, so times that fresh are not believed.
    monkeypatch.setattr(run_cache, "_stamp", lambda path: [5, time.time_ns() - 10**9, 0, 7])
    path.write_text(text())
    assert cached_run(path, cache_dir=str(tmp_path / "cache")) == first
    assert first != second


def test_an_unchanged_file_is_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.json"
    path.write_text(text())
    monkeypatch.setattr(run_cache, "_SETTLED_NS", -(10**12))
    first = cached_run(path, cache_dir=str(tmp_path / "cache"))
    monkeypatch.setattr(run_cache.hashlib, "file_digest", None)
    assert cached_run(path, cache_dir=str(tmp_path / "cache")) == first


def test_the_limits_of_unpacking_are_set_on_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bomb = tmp_path / "bomb.json.gz"
    bomb.write_bytes(gzip.compress(text()[:-1].encode() + b" " * (70 << 20) + b"}"))
    assert main(["import", str(bomb), "-o", str(tmp_path / "none")]) == 3
    said = capsys.readouterr().err
    assert "looks like a decompression bomb" in said
    assert "--max-ratio" in said
    assert not (tmp_path / "none").exists()
    assert main(["import", str(bomb), "-o", str(tmp_path / "run"), "--max-ratio", "2000"]) == 0
    assert (
        main(
            [
                "import",
                str(bomb),
                "-o",
                str(tmp_path / "none"),
                "--max-ratio",
                "2000",
                "--max-bytes",
                "1000000",
            ]
        )
        == 3
    )
    assert "more than 1,000,000 bytes" in capsys.readouterr().err
    assert RunReader(str(tmp_path / "run")).read("events").num_rows == 3


def test_an_archive_is_read_as_a_directory_is(tmp_path: Path) -> None:
    path = tmp_path / "ranks.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("out/README.md", "how this was made")
        archive.writestr("out/worker1.json", text())
        archive.writestr("out/worker0.json.gz", gzip.compress(text().encode()))
    report = import_trace(path, tmp_path / "run")
    assert (report.ranks, report.skipped, report.exit_code) == ([0, 1], [], 0)
    assert ranks_of(report.directory) == {0: "file name", 1: "file name"}
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.txt", "a")
        archive.writestr("b.txt", "b")
    with pytest.raises(InputError, match=r"ranks\.zip holds no trace"):
        import_trace(path, tmp_path / "none")
