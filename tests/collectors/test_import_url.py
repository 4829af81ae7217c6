"""Traces and runs on an object store, without any cluster."""

from __future__ import annotations

import uuid
from pathlib import Path

import fsspec
import pytest

from explorer.analysis.ranks.job_report import job_report
from explorer.analysis.rollup import rolled_up
from explorer.analysis.run import open_run
from explorer.cli.main import main
from explorer.collectors.import_trace import import_trace
from explorer.store.reader import RunReader
from tests.integration.kineto_ranks import LATE, write_ranks


@pytest.fixture
def store(tmp_path: Path) -> str:
    """A folder on a store, with nine traces in it."""
    name = uuid.uuid4().hex
    write_ranks(tmp_path / "traces", ranks=9)
    fsspec.filesystem("memory").put(str(tmp_path / "traces"), f"/{name}/traces", recursive=True)
    return f"memory://{name}"


@pytest.mark.parametrize("pattern", ["traces", "traces/*.json"])
def test_from_a_store_to_a_store(
    store: str, pattern: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = f"{store}/run"
    # The store of the tests is in this process.
    assert main(["import", f"{store}/{pattern}", "-o", run, "--processes", "1"]) == 0
    said = capsys.readouterr().err
    assert "No roll-up" not in said
    reader = RunReader(run)
    assert rolled_up(reader) == set(range(9))
    here = import_trace(tmp_path / "traces", tmp_path / "run").directory
    found, wanted = (job_report(open_run(one)).to_dict() for one in (run, here))
    assert {**found, "run": ""} == {**wanted, "run": ""}
    assert found["stragglers"][0]["rank"] == LATE
    assert reader.manifests[3].inputs[0]["path"].endswith("/traces/rank3.json")


def test_findings_are_those_of_a_local_run(store: str, tmp_path: Path) -> None:
    run = import_trace([f"{store}/traces"], f"{store}/run").directory
    here = import_trace(tmp_path / "traces", tmp_path / "run").directory
    found, wanted = (open_run(one).bottlenecks() for one in (run, here))
    assert [one.to_dict() for one in found] == [one.to_dict() for one in wanted]
    assert any(one.rule == "straggler" for one in found)


def test_what_is_not_there_is_one_line(
    store: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["import", f"{store}/nothing", "-o", str(tmp_path / "run")]) == 3
    assert "holds no file" in capsys.readouterr().err
