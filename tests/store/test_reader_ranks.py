"""A reader can be held to some ranks."""

from __future__ import annotations

from pathlib import Path

import pytest

from explorer.model.errors import UsageError
from explorer.store.reader import RunReader
from explorer.store.writer import RunWriter


@pytest.fixture
def run(tmp_path: Path) -> Path:
    for rank in (0, 2):
        with RunWriter(tmp_path / "run", rank=rank) as writer:
            writer.write("tracks", [{"track_id": 1, "kind": "thread", "label": f"rank {rank}"}])
    return tmp_path / "run"


def test_one_rank_only(run: Path) -> None:
    reader = RunReader(run, ranks=[2])
    assert reader.ranks == [2]
    assert reader.read("tracks").column("label").to_pylist() == ["rank 2"]


def test_an_absent_rank_is_a_usage_error(run: Path) -> None:
    with pytest.raises(UsageError, match="has no rank 1; it holds ranks 0 to 2"):
        RunReader(run, ranks=[1])
