"""No rows make no file."""

from __future__ import annotations

from pathlib import Path

from explorer.store.reader import RunReader
from explorer.store.verify import verify
from explorer.store.writer import RunWriter


def test_a_table_without_rows_leaves_no_file(tmp_path: Path) -> None:
    with RunWriter(tmp_path / "run") as writer:
        assert writer.write("tracks", []).rows == 0
        assert writer.write("events", []).rows == 0
    assert not list((tmp_path / "run").rglob("*.parquet"))
    assert verify(tmp_path / "run") == []
    assert RunReader(tmp_path / "run").read("tracks").num_rows == 0
