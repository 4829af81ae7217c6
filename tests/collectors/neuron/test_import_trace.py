"""Neuron directories through the general import: recognised by content, whole or not at all, errors that help."""

from __future__ import annotations

from pathlib import Path

import pytest

from explorer.collectors.import_trace import import_trace
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


def test_nothing_is_left_when_the_import_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, source = write_story(tmp_path / "data")

    def fail(*_: object) -> None:
        raise InputError("planted")

    monkeypatch.setattr("explorer.collectors.neuron.rank_import.DeviceProfile.write", fail)
    with pytest.raises(InputError, match="planted"):
        import_trace(source, tmp_path / "run")
    assert not [path for path in tmp_path.iterdir() if path.name != "data"]
