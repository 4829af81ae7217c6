"""A manifest that cannot be read costs its rank and no other."""

from __future__ import annotations

from pathlib import Path

import pytest

from explorer.model.errors import InputError, UsageError
from explorer.store.location import Location
from explorer.store.manifest import encode, manifest_path
from explorer.store.reader import RunReader
from explorer.store.verify import verify
from explorer.store.writer import RunWriter

BROKEN = {
    "cut": b"{",
    "empty": b"",
    "wrong type": b'{"parts":[1]}',
    "not UTF-8": b'{"rank":1,"made_by":"\xff"}',
    "too deep": b"[" * 100_000,
    "too deep inside": b'{"rank":1,"host":{"a":' + b"[" * 100_000,
    "no object": b"[]",
    "of another rank": b"{}",
    "outside": b'{"rank":1,"parts":[{"table":"events","path":"../x","rows":1,"size_bytes":1}]}',
}


@pytest.fixture
def run(tmp_path: Path) -> Path:
    for rank in (0, 1, 2):
        with RunWriter(tmp_path / "run", rank=rank) as writer:
            writer.write("tracks", [{"track_id": 1, "kind": "thread", "label": f"rank {rank}"}])
    return tmp_path / "run"


@pytest.mark.parametrize("content", BROKEN.values(), ids=list(BROKEN))
def test_it_costs_its_rank_only(content: bytes, run: Path) -> None:
    (run / manifest_path(1)).write_bytes(content)
    reader = RunReader(run)
    assert reader.ranks == [0, 2]
    assert reader.read("tracks").column("label").to_pylist() == ["rank 0", "rank 2"]
    assert list(reader.unreadable) == [1]
    assert reader.unreadable[1]
    assert [(p.severity, p.rank, p.path) for p in verify(run)] == [("error", 1, manifest_path(1))]


def test_other_ranks_open_alone_and_that_one_does_not(run: Path) -> None:
    (run / manifest_path(1)).write_text("{")
    assert RunReader(run, ranks=[0]).unreadable == {}
    assert RunReader(run).of_ranks([2]).ranks == [2]
    for ranks in ([1], [0, 1]):
        with pytest.raises(InputError, match=r"rank-1\.json cannot be read"):
            RunReader(run, ranks=ranks)
    with pytest.raises(UsageError, match="has no rank 7"):
        RunReader(run, ranks=[7])


def test_no_manifest_at_all_is_no_run_to_read(run: Path) -> None:
    for rank in (0, 1, 2):
        (run / manifest_path(rank)).write_text("{")
    with pytest.raises(InputError, match=r"rank-0\.json cannot be read"):
        RunReader(run)


def test_a_name_that_is_not_of_a_rank_is_nobody_s_manifest(run: Path) -> None:
    (run / "manifests" / "rank-01.json").write_bytes(encode(RunReader(run).manifests[1]))
    assert RunReader(run).ranks == [0, 1, 2]
    assert RunReader(run).unreadable == {}


def test_an_empty_path_is_not_the_working_directory(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(run)
    for call in (Location.of, RunReader, RunWriter):
        with pytest.raises(UsageError, match="The path of the run is empty"):
            call("")
