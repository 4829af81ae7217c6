"""Ranks that come later are added to the run that is there."""

from __future__ import annotations

from pathlib import Path

import pytest

from explorer.analysis.ranks.job_report import job_report
from explorer.analysis.run import open_run
from explorer.cli.main import main
from explorer.collectors.import_trace import import_trace
from explorer.collectors.options import ImportOptions
from explorer.model.errors import InputError, UsageError
from explorer.store.reader import RunReader
from tests.integration.kineto_ranks import LATE, write_ranks

ADD = ImportOptions(add=True)


def test_ranks_one_after_the_other_make_the_run_of_all_at_once(tmp_path: Path) -> None:
    traces = write_ranks(tmp_path / "traces", ranks=9)
    directory = import_trace(traces[:4], tmp_path / "run").directory
    # In any order, several at once, and one that is there already.
    for few in ([traces[8]], traces[3:6], [traces[7], traces[6]]):
        report = import_trace(few, tmp_path / "run", options=ADD)
        assert report.directory == directory
    assert RunReader(directory).ranks == list(range(9))
    together = job_report(open_run(import_trace(traces, tmp_path / "together").directory)).to_dict()
    added = job_report(open_run(directory)).to_dict()
    assert {**added, "run": ""} == {**together, "run": ""}
    assert added["stragglers"][0]["rank"] == LATE


def test_a_rank_that_is_there_stays_as_it_is_and_is_said(tmp_path: Path) -> None:
    traces = write_ranks(tmp_path / "traces", ranks=3)
    directory = import_trace(traces[:2], tmp_path / "run").directory
    before = (Path(directory) / "manifests" / "rank-1.json").read_bytes()
    report = import_trace(traces[1:], tmp_path / "run", options=ADD)
    assert report.ranks == [2]
    assert report.skipped == [(str(traces[1]), "the run holds rank 1 already")]
    assert (Path(directory) / "manifests" / "rank-1.json").read_bytes() == before
    with pytest.raises(InputError, match="the run holds rank 0 already"):
        import_trace(traces[0], tmp_path / "run", options=ADD)


def test_an_unreadable_rank_leaves_the_run_as_it_was(tmp_path: Path) -> None:
    traces = write_ranks(tmp_path / "traces", ranks=3)
    directory = import_trace(traces[:2], tmp_path / "run").directory
    traces[2].write_text('{"traceEvents": 7}')
    with pytest.raises(InputError):
        import_trace(traces[2], tmp_path / "run", options=ADD)
    assert RunReader(directory).ranks == [0, 1]
    assert main(["verify", directory]) == 0


def test_there_must_be_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (trace,) = write_ranks(tmp_path / "traces", ranks=1)
    with pytest.raises(UsageError, match="is no run to add to"):
        import_trace(trace, tmp_path / "run", options=ADD)
    assert main(["import", str(trace), "-o", str(tmp_path / "run"), "--add"]) == 2
    assert "Leave --add out" in capsys.readouterr().err
