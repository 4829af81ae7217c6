"""The verb ranks, as a shell sees it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from explorer.cli.main import main
from explorer.store.manifest import manifest_path
from tests.analysis.ranks.job import Job


def test_the_straggler_comes_first(tmp_path: Path, capsys: Any) -> None:
    directory = Job(extra={(2, step): 300_000 for step in range(30)}, offset_ns=(0, 10**7, 0, 0)).write(
        tmp_path / "run"
    )
    assert main(["ranks", directory]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert text.startswith("Rank 2 holds the others up by 30")
    assert "last in 30 of 30 steps since step 0, persistent." in text
    assert "train.py:11 batch = slow(batch)" in text
    assert main(["ranks", directory, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "neuron-explorer/ranks/1"
    assert document["stragglers"][0]["rank"] == 2
    assert [row["rank"] for row in document["ranks"]] == [0, 1, 2, 3]


def test_one_rank(tmp_path: Path, capsys: Any) -> None:
    assert main(["ranks", Job(ranks=1).write(tmp_path / "run")]) == 0
    assert capsys.readouterr().out.startswith("One rank")


def test_ranks_that_are_not_there_are_said(tmp_path: Path, capsys: Any) -> None:
    directory = Job(ranks=3).write(tmp_path / "run")
    for rank in range(3):
        path = Path(directory) / manifest_path(rank)
        path.write_text(json.dumps({**json.loads(path.read_text()), "world_size": 4}))
    assert main(["ranks", directory]) == 0
    assert capsys.readouterr().out.startswith("The job had 4 ranks; 3 is not in this run.\n")
    assert main(["ranks", directory, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["absent"] == [{"first_rank": 3, "last_rank": 3}]
    assert main(["health", directory]) == 0
    assert "missing_ranks" in capsys.readouterr().out
