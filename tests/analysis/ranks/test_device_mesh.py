"""What process groups are for, and the mesh they form."""

from __future__ import annotations

from pathlib import Path

import pytest

from explorer.analysis.ranks.device_mesh import Dimension, dimensions, kind_of, mesh_text
from explorer.analysis.run import open_run
from explorer.store.writer import RunWriter


@pytest.mark.parametrize(
    ("description", "kind"),
    [
        ("mesh_tp", "tensor"),
        ("TENSOR_MODEL_PARALLEL_GROUP", "tensor"),
        ("mesh_dp_shard", "data"),
        ("DATA_PARALLEL_GROUP", "data"),
        ("PIPELINE_MODEL_PARALLEL_GROUP", "pipeline"),
        ("mesh_pp", "pipeline"),
        ("EXPERT_TENSOR_PARALLEL_GROUP", "expert"),
        ("mesh_cp", "context"),
        ("default_pg", "other"),
        ("undefined", "other"),
        ("adaptive", "other"),
    ],
)
def test_kinds(description: str, kind: str) -> None:
    assert kind_of(description) == kind


def test_a_mesh_of_three_dimensions(tmp_path: Path) -> None:
    """2 x 2 x 2: pipeline outermost, tensor innermost, and a group of all."""
    groups = (
        {("mesh_pp", rank): [rank % 4, rank % 4 + 4] for rank in range(8)}
        | {
            ("mesh_dp", rank): [rank - rank % 4 + rank % 2, rank - rank % 4 + rank % 2 + 2]
            for rank in range(8)
        }
        | {("mesh_tp", rank): [rank - rank % 2, rank - rank % 2 + 1] for rank in range(8)}
        | {("default_pg", rank): list(range(8)) for rank in range(8)}
    )
    for rank in range(8):
        own = [(name, ranks) for (name, one), ranks in groups.items() if one == rank]
        with RunWriter(tmp_path / "run", rank=rank) as writer:
            writer.write("tracks", [{"track_id": 1, "kind": "thread", "device_type": "cpu", "label": "main"}])
            writer.write(
                "events",
                [
                    {
                        "event_id": number,
                        "track_id": 1,
                        "category": "collective",
                        "name": "all_reduce",
                        "start_ns": 100 * number,
                        "duration_ns": 50,
                        "self_ns": 50,
                    }
                    for number in range(len(own))
                ],
            )
            writer.write(
                "collectives",
                [
                    {
                        "event_id": number,
                        "side": "host",
                        "group": f"{name}{ranks}",
                        "group_description": name,
                        "group_ranks": str(ranks),
                        "group_size": len(ranks),
                        "operation": "all_reduce",
                    }
                    for number, (name, ranks) in enumerate(own)
                ],
            )
    found = dimensions(open_run(str(tmp_path / "run")).engine)
    assert mesh_text(found) == "pp 2 x dp 2 x tp 2"
    assert found[0] == Dimension("pp", "pipeline", 2, 4, ((0, 4), (1, 5), (2, 6), (3, 7)), 8)
    assert [(one.kind, one.stride) for one in found] == [
        ("pipeline", 4),
        ("data", 2),
        ("tensor", 1),
        ("world", 1),
    ]
