"""What ends a gap where no dependency is recorded: semaphore updates that name a queue or an engine, then coincidence."""

from __future__ import annotations

from pathlib import Path

import pytest

from explorer.analysis.run import open_run
from explorer.collectors.neuron.session_import import import_session
from tests.neuron_fixture.builder import ProfileBuilder

START = 5_000_000
GAP_NS = 1000
WORK_NS = 500


def _profile(
    folder: Path, updates: list[tuple[int, str, str | None]], *, ids: list[int] | None = None
) -> Path:
    """Tensor instructions of WORK_NS with GAP_NS between them, and semaphore updates at (time, id, source)."""
    builder = ProfileBuilder("gaps")
    for number in range(6):
        builder.timed(
            "Instruction", START + number * (GAP_NS + WORK_NS), WORK_NS, id=ids[number] if ids else number + 1,
            engine="Tensor", opcode="MATMUL", pcore_idx=0, bir_id=str(number),
        )  # fmt: skip
    for at, name, source in updates:
        builder.row(
            "SemaphoreUpdate", timestamp=START + at, id=name, value=1, update_source=source, pcore_idx=0
        )
    builder.row("Metadata", profile_schema_version="7.4.0", num_physical_cores=1)
    builder.write(folder / "source")
    return folder


def _gaps(folder: Path) -> list[tuple[str, str | None, str, int | None]]:
    run = open_run(import_session(folder / "source", folder / "run").directory)
    rows = run.engine.sql(
        "SELECT cause, blocker, method, event_id FROM neuron_idle WHERE engine = 'Tensor' ORDER BY start_ns"
    ).rows()
    return [tuple(row.values()) for row in rows]  # type: ignore[misc]


def test_the_last_update_within_the_gap_names_the_cause(tmp_path: Path) -> None:
    second, third, fourth, fifth = (WORK_NS + number * (GAP_NS + WORK_NS) for number in range(1, 5))
    _profile(
        tmp_path,
        [
            (600, "qSyncIO0", None),
            (second + 10, "qSyncIO0", None),
            (second + GAP_NS, "qPoolDynamic0", None),  # at the very end of the gap: still within
            (third + 5, "S[3]", "act"),
            (fourth, "qSpillReload0", None),  # at the start of the gap: before it
            (fifth + 7, "pe", "qSpillReload0"),  # a queue's name says more than an engine's
        ],
    )
    assert _gaps(tmp_path) == [
        ("input", "qSyncIO0", "semaphore", 1),
        ("dma", "qPoolDynamic0", "semaphore", 2),
        ("engine", "Scalar", "semaphore", 3),
        ("unknown", None, "none", 4),
        ("spill", "qSpillReload0", "semaphore", 5),
    ]


def test_updates_that_name_neither_say_nothing(tmp_path: Path) -> None:
    _profile(tmp_path, [(600, "S[7]", "S[7]")])
    assert {gap[:3] for gap in _gaps(tmp_path)} == {("unknown", None, "none")}


@pytest.mark.parametrize("repeated", [False, True])
def test_gaps_lead_to_the_instruction_behind_them(tmp_path: Path, repeated: bool) -> None:
    ids = [70, 70, 90, 11, 12, 13] if repeated else [70, 80, 90, 11, 12, 13]
    _profile(tmp_path, [], ids=ids)
    run = open_run(import_session(tmp_path / "source", tmp_path / "run").directory)
    rows = run.engine.sql(
        """SELECT g.start_ns + g.duration_ns AS end_ns, e.start_ns AS next_ns FROM neuron_idle g
           LEFT JOIN events e USING (event_id) ORDER BY g.start_ns"""
    ).rows()
    assert len(rows) == 5
    # Ids that repeat tie no row to an event: nothing is said instead of something wrong.
    assert all(row["next_ns"] == (None if repeated else row["end_ns"]) for row in rows)
