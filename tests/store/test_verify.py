"""verify finds every kind of damage and nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from explorer.store.verify import verify
from explorer.store.writer import RunWriter


@pytest.fixture
def run(tmp_path: Path) -> Path:
    with RunWriter(tmp_path / "run") as writer:
        writer.write("tracks", [{"track_id": 1, "kind": "thread", "label": "main"}])
        writer.write(
            "sites", [{"site_id": 7, "file": "train.py", "line": 3, "function": "step", "is_user": True}]
        )
        writer.write(
            "events",
            [
                {
                    "event_id": n,
                    "parent_id": None if n == 1 else 1,
                    "track_id": 1,
                    "category": "op",
                    "name": "aten::add",
                    "start_ns": n,
                    "duration_ns": 1,
                    "self_ns": 1,
                    "site_id": 7,
                }
                for n in (1, 2)
            ],
        )
    return tmp_path / "run"


def said(run: Path) -> list[tuple[str, str, str]]:
    return [(p.severity, p.table, p.message) for p in verify(run)]


def part(run: Path, table: str) -> Path:
    return next((run / table).rglob("*.parquet"))


def test_a_whole_run_has_no_problems(run: Path) -> None:
    assert verify(run) == []


def edit(run: Path, change: Callable[[dict], None]) -> None:
    path = run / "manifests" / "rank-0.json"
    manifest = json.loads(path.read_text())
    change(manifest)
    path.write_text(json.dumps(manifest))


def test_a_missing_part(run: Path) -> None:
    part(run, "events").unlink()
    assert said(run) == [("error", "events", "is listed in the manifest but does not exist")]


def test_a_truncated_part(run: Path) -> None:
    path = part(run, "events")
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    ((severity, table, message),) = said(run)
    assert (severity, table) == ("error", "events")
    assert message == f"holds {len(whole) // 2:,} bytes; the manifest says {len(whole):,}"


def test_damage_of_the_same_size(run: Path) -> None:
    path = part(run, "events")
    path.write_bytes(b"\0" * path.stat().st_size)
    ((severity, table, message),) = said(run)
    assert (severity, table) == ("error", "events")
    assert message.startswith("cannot be read: ")


def test_a_wrong_row_count(run: Path) -> None:
    def change(manifest: dict) -> None:
        for listed in manifest["parts"]:
            if listed["table"] == "events":
                listed["rows"] = 5

    edit(run, change)
    assert said(run) == [("error", "events", "holds 2 rows; the manifest says 5")]


def test_references_and_repeated_ids(tmp_path: Path) -> None:
    event = {
        "event_id": 1,
        "parent_id": 99,
        "track_id": 1,
        "category": "op",
        "name": "x",
        "start_ns": 0,
        "duration_ns": 1,
        "self_ns": 1,
    }
    with RunWriter(tmp_path / "run") as writer:
        writer.write("events", [event, {**event, "parent_id": None}])
    assert said(tmp_path / "run") == [
        ("error", "events", "2 rows have a track_id that is not in tracks.track_id"),
        ("error", "events", "1 rows have a parent_id that is not in events.event_id"),
        ("error", "events", "1 rows repeat the event_id of another row"),
    ]


def test_leftovers_are_warnings(run: Path) -> None:
    (run / "events" / "rank=0" / "left.parquet").write_bytes(b"")
    edit(run, lambda manifest: manifest.update(finished=False))
    assert [(p.severity, p.path) for p in verify(run)] == [
        ("warning", ""),
        ("warning", "events/rank=0/left.parquet"),
    ]
