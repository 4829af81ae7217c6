"""The capture path of a Trainium machine, against a made-up module and program that record how they were called."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from explorer import neuron_profile  # noqa: E402
from explorer.analysis.run import Run, open_run  # noqa: E402
from explorer.collectors.neuron import aws_tool  # noqa: E402
from explorer.collectors.neuron.capture import MODULE, neuron_profiling, unset_debug_variables  # noqa: E402
from tests.neuron_fixture import fake_torch_neuronx  # noqa: E402
from tests.neuron_fixture.story import plant  # noqa: E402


def _record(folder: Path) -> Run:
    weight = torch.ones(4, 4)
    with neuron_profile(folder / "run", device_profile=True, telemetry=False) as prof:
        for _ in range(3):
            weight.mm(weight)  # the recorded line
            prof.step()
    assert prof.directory is not None
    return open_run(prof.directory)


def _health(run: Run) -> dict[str, dict[str, str]]:
    return {row["kind"]: row for row in run.sql("SELECT kind, severity, message, remedy FROM health").rows()}


@pytest.fixture
def recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Run, dict[str, object], Path]:
    calls = fake_torch_neuronx.install(monkeypatch)
    fake_torch_neuronx.install_program(tmp_path, monkeypatch)
    return _record(tmp_path), calls, tmp_path


def test_module_and_program_are_used_as_documented(recorded: tuple[Run, dict[str, object], Path]) -> None:
    run, calls, folder = recorded
    options = calls["options"]
    assert isinstance(options, dict)
    directory = os.path.join(run.directory, "neuron-artefacts", "rank-0")
    assert options["profile_output_dir"] == directory
    assert [mode.name for mode in options["modes"]] == ["DEVICE", "RUNTIME", "CPU_UTIL", "HOST_MEMORY"]
    assert (calls["exported"], calls["synchronized"]) == (1, 1)
    profiler = calls["profiler"]
    assert set(profiler.activities) == {
        torch.profiler.ProfilerActivity.CPU,
        torch.profiler.ProfilerActivity.PrivateUse1,
    }  # type: ignore[attr-defined]
    assert profiler.experimental_config is calls["config"]  # type: ignore[attr-defined]
    assert json.loads((folder / "called.json").read_text()) == [
        "view", "-d", directory, "--ingest-only", "--display-name", "rank", "--data-path", f"{directory}/parquet",
    ]  # fmt: skip


def test_one_session_holds_every_step(recorded: tuple[Run, dict[str, object], Path]) -> None:
    run, _, _ = recorded
    assert len(run.reader.manifests[0].capture["windows"]) == 1
    assert run.sql("SELECT count(*) AS n FROM events WHERE name = 'aten::mm'").rows() == [{"n": 3}]


def test_device_work_reaches_the_recorded_line(recorded: tuple[Run, dict[str, object], Path]) -> None:
    run, _, _ = recorded
    rows = run.sql(
        """SELECT e.name, o.name AS op, s.line, s.file, e.precision FROM events e JOIN events o ON o.event_id = e.op_id
           JOIN sites s ON s.site_id = e.site_id WHERE e.name = 'nc_exec_running'"""
    ).rows()
    line = (
        Path(__file__).read_text().splitlines().index("            weight.mm(weight)  # the recorded line")
        + 1
    )
    assert [(row["op"], row["line"], os.path.basename(row["file"]), row["precision"]) for row in rows] == [
        ("aten::mm", line, "test_capture.py", "exact")
    ]
    count = run.sql(
        """SELECT count(*) AS n, count(DISTINCT e.launch_id) AS launches, min(l.name) AS launch FROM events e
           JOIN events l ON l.event_id = e.launch_id WHERE e.category = 'instruction'"""
    ).rows()[0]
    assert count == {"n": len(plant().builder.rows["Instruction"]), "launches": 1, "launch": "nrt_execute"}
    # The op that launched it is ours, recorded once: with its exact line, on our thread's track.
    own = run.sql(
        """SELECT count(DISTINCT e.op_id) AS ops, min(o.attribution) AS how, min(t.kind) AS kind FROM events e
           JOIN events o ON o.event_id = e.op_id JOIN tracks t ON t.track_id = o.track_id WHERE e.category = 'instruction'"""
    ).rows()[0]
    assert own == {"ops": 1, "how": "traced", "kind": "thread"}


def test_numbers_of_events_and_tracks_do_not_collide(recorded: tuple[Run, dict[str, object], Path]) -> None:
    run, _, _ = recorded
    for table, key in (("events", "event_id"), ("tracks", "track_id")):
        row = run.sql(f"SELECT count(*) AS n, count(DISTINCT {key}) AS d FROM {table}").rows()[0]
        assert row["n"] == row["d"]
    assert run.sql("SELECT count(*) AS n FROM neuron.Instruction").rows()[0]["n"] == len(
        plant().builder.rows["Instruction"]
    )


def test_without_the_program_the_run_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_torch_neuronx.install(monkeypatch)
    monkeypatch.setattr(aws_tool, "USUAL_PLACE", str(tmp_path / "none"))
    monkeypatch.setenv("PATH", str(tmp_path))
    health = _health(_record(tmp_path))
    assert "--ingest-only" in health["neuron_tool_missing"]["remedy"]


def test_a_failing_program_loses_only_the_device_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_torch_neuronx.install(monkeypatch)
    fake_torch_neuronx.install_program(tmp_path, monkeypatch, fails=True)
    run = _record(tmp_path)
    assert "unsupported NTFF version 129" in _health(run)["neuron_processing_failed"]["message"]
    assert run.sql("SELECT count(*) AS n FROM events WHERE name = 'aten::mm'").rows() == [{"n": 3}]


def test_no_artefacts_are_explained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_torch_neuronx.install(monkeypatch, artefacts=False)
    assert "synchronize" in _health(_record(tmp_path))["neuron_no_artefacts"]["remedy"]


def test_without_the_module_the_capture_goes_on(tmp_path: Path) -> None:
    assert MODULE not in sys.modules
    run = _record(tmp_path)
    assert _health(run)["neuron_module_missing"]["severity"] == "warning"
    assert run.sql("SELECT count(*) AS n FROM events WHERE name = 'aten::mm'").rows() == [{"n": 3}]


def test_a_broken_module_counts_as_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "torch_neuronx"
    package.mkdir()
    (package / "__init__.py").write_text("raise RuntimeError('no driver')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert neuron_profiling() is None


def test_our_own_program_is_never_taken_for_theirs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(aws_tool.VARIABLE, raising=False)
    monkeypatch.setattr(aws_tool, "USUAL_PLACE", str(tmp_path / "none"))
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    for folder, text in ((ours, "from explorer.cli.main import main\n"), (theirs, "\x7fELF")):
        folder.mkdir()
        (folder / "neuron-explorer").write_text(f"#!/usr/bin/python3\n{text}")
        (folder / "neuron-explorer").chmod(0o755)
    assert aws_tool.find_aws_explorer(str(ours)) is None
    assert aws_tool.find_aws_explorer(f"{ours}{os.pathsep}{theirs}") == str(theirs / "neuron-explorer")
    # A variable that names ours by mistake is not believed either.
    monkeypatch.setenv(aws_tool.VARIABLE, str(ours / "neuron-explorer"))
    assert aws_tool.find_aws_explorer(str(ours)) is None


def test_unset_debug_variables_are_listed_with_their_cost() -> None:
    assert set(unset_debug_variables({})) == {
        "XLA_IR_DEBUG",
        "XLA_HLO_DEBUG",
        "NEURON_FRAMEWORK_DEBUG",
        "NKI_DEBUG_INFO",
    }
    assert set(unset_debug_variables({"XLA_IR_DEBUG": "1", "NKI_DEBUG_INFO": "0"})) == {
        "XLA_HLO_DEBUG",
        "NEURON_FRAMEWORK_DEBUG",
        "NKI_DEBUG_INFO",
    }
