"""Neuron directories through the general import: recognised by content, whole or not at all, errors that help."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from explorer.analysis.run import open_run
from explorer.collectors.import_trace import import_trace
from explorer.collectors.neuron.layout import find_artefacts
from explorer.model.errors import InputError
from explorer.store.reader import RunReader
from tests.neuron_fixture.session import write_session
from tests.neuron_fixture.story import write_story


def test_a_session_directory_is_recognised(tmp_path: Path) -> None:
    write_session(tmp_path / "data")
    report = import_trace(tmp_path / "data", tmp_path / "run")
    assert (report.ranks, report.formats, report.exit_code) == ([0, 1], ["neuron_parquet"], 0)
    assert report.events == sum(
        part.rows
        for rank in (0, 1)
        for part in RunReader(report.directory).manifests[rank].parts
        if part.table == "events"
    )
    again = import_trace(tmp_path / "data", tmp_path / "run")
    assert again.directory == f"{tmp_path}/run-2"


def test_the_profile_itself_or_one_of_its_files_will_do(tmp_path: Path) -> None:
    _, source = write_story(tmp_path / "data")
    assert (
        import_trace(source, tmp_path / "a").events
        == import_trace(source / "Instruction_0.parquet", tmp_path / "b").events
    )


def test_raw_artefacts_say_what_they_need(tmp_path: Path) -> None:
    folder = tmp_path / "i-1_pid_7" / "2026"
    folder.mkdir(parents=True)
    (folder / "profile_nc_0_session_0.ntff").write_bytes(b"")
    (folder / "ntrace.pb").write_bytes(b"x")
    with pytest.raises(InputError) as caught:
        import_trace(tmp_path, tmp_path.parent / "run")
    assert "1 .ntff, 0 .neff, 1 .pb" in caught.value.message
    assert "0 bytes" in caught.value.message
    assert "--ingest-only" in caught.value.remedy


def _serve(folder: Path) -> Path:
    """What a vLLM server leaves: sessions by process, compiled graphs in a folder of their own, torch traces beside them."""
    session = folder / "neuron_profiles" / "i-1_pid_7" / "20260101"
    session.mkdir(parents=True)
    for name in ("profile_nc_0_session_0.ntff", "ntrace.pb", "trace_info.pb"):
        (session / name).write_bytes(b"x")
    (folder / "neuron_profiles" / "neffs").mkdir()
    (folder / "neuron_profiles" / "neffs" / "graph_abc.neff").write_bytes(b"x")
    return folder / "neuron_profiles"


def test_the_layout_of_a_server_is_complete(tmp_path: Path) -> None:
    served = _serve(tmp_path)
    found = find_artefacts(str(served))
    assert (len(found.raw.ntff), len(found.raw.neff), len(found.raw.runtime)) == (1, 1, 2)
    # Graphs in a folder of their own are not missing.
    assert found.raw.faults() == []
    with pytest.raises(InputError, match=r"1 \.ntff, 1 \.neff, 2 \.pb"):
        import_trace(served, tmp_path / "run")


def test_torch_traces_of_a_server_are_read_and_its_raw_files_named(tmp_path: Path) -> None:
    served = _serve(tmp_path)
    ranges = [
        {"ph": "X", "cat": "user_annotation", "name": name, "ts": 100.0 * number, "dur": 50.0, "pid": 1, "tid": 1, "args": {}}
        for number, name in enumerate(("execute_context_1(64)_generation_0(0)", "execute_context_0(0)_generation_1(1)"))
    ]  # fmt: skip
    (served / "rank0.17.pt.trace.json").write_text(json.dumps({"schemaVersion": 1, "traceEvents": ranges}))
    report = import_trace(served, tmp_path / "run")
    assert (report.formats, report.ranks, report.exit_code) == (["kineto"], [0], 4)
    ((where, reason),) = report.skipped
    assert where == str(served)
    assert "1 .ntff" in reason
    assert "--ingest-only" in reason
    rows = open_run(report.directory).sql("SELECT phase FROM steps ORDER BY step").rows()
    assert [row["phase"] for row in rows] == ["prefill", "decode"]


def test_torch_traces_beside_profiles_are_said(tmp_path: Path) -> None:
    write_story(tmp_path / "data")
    (tmp_path / "data" / "rank0.17.pt.trace.json").write_text("{}")
    run = open_run(import_trace(tmp_path / "data", tmp_path / "run").directory)
    (row,) = run.sql("SELECT message FROM health WHERE kind = 'neuron_framework_traces'").rows()
    assert "rank0.17.pt.trace.json" in row["message"]


def test_nothing_is_left_when_the_import_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, source = write_story(tmp_path / "data")

    def fail(*_: object) -> None:
        raise InputError("planted")

    monkeypatch.setattr("explorer.collectors.neuron.rank_import.DeviceProfile.write", fail)
    with pytest.raises(InputError, match="planted"):
        import_trace(source, tmp_path / "run")
    assert not [path for path in tmp_path.iterdir() if path.name != "data"]
