"""doctor fits one screen, survives what it looks at, and tells the programs of one name apart."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from explorer.cli import machine
from explorer.cli import main as cli


def program(folder: Path, text: str) -> Path:
    folder.mkdir(parents=True)
    path = folder / "neuron-explorer"
    path.write_text(text)
    path.chmod(0o755)
    return path


def test_programs_of_one_name_are_told_apart(tmp_path: Path) -> None:
    ours = program(
        tmp_path / "venv" / "bin", "#!/usr/bin/python\nfrom explorer.cli.main import main\nmain()\n"
    )
    aws = program(tmp_path / "opt" / "aws" / "neuron" / "bin", "\x7fELF")
    other = program(tmp_path / "other", "#!/bin/sh\n")
    path = os.pathsep.join(str(p.parent) for p in (aws, ours, other, tmp_path / "missing"))
    assert machine.programs_on_path(path=path) == [
        (str(aws), "aws"),
        (str(ours), "ours"),
        (str(other), "other"),
    ]


def test_a_program_of_aws_that_wins_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    aws = program(tmp_path / "opt" / "aws" / "neuron" / "bin", "\x7fELF")
    monkeypatch.setenv("PATH", str(aws.parent))
    check = machine._program()
    assert check.state == "note"
    assert check.found == f"PATH finds {aws} first: AWS's tool of the same name"
    assert check.remedy.startswith("Start this one as ")


def test_broken_torch_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        machine, "_PROBE", "import sys; sys.exit('libcudart.so.13: cannot open shared object')"
    )
    found = machine.probe_torch()
    assert found == {"error": "it does not load: libcudart.so.13: cannot open shared object"}
    monkeypatch.setattr(machine, "_PROBE", "import os; os.abort()")
    assert "it does not load" in machine.probe_torch()["error"]
    monkeypatch.setattr(machine, "_PROBE", "import time; time.sleep(60)")
    monkeypatch.setattr(machine, "PROBE_TIMEOUT_S", 0.5)
    assert machine.probe_torch() == {"error": "importing it took more than 0.5 s"}


def test_one_screen_and_one_document(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    assert cli.main(["doctor"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 30
    assert max(map(len, lines)) <= 100
    assert cli.main(["doctor", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "neuron-explorer/doctor/1"
    names = [check["name"] for check in document["checks"]]
    assert names[:4] == ["Python", "neuron-explorer", "torch", "accelerator"]
    assert {check["state"] for check in document["checks"]} <= {"ok", "note", "no"}


def test_the_trace_reader_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NE_NO_SCANNER", "1")
    check = machine._trace_reader()
    assert (check.name, check.state) == ("trace reader", "note")
    assert check.found == "not the compiled one, as NE_NO_SCANNER is set: imports take longer"
    monkeypatch.delenv("NE_NO_SCANNER")
    monkeypatch.setattr("explorer.collectors.kineto.compiled.LAYOUT", -1)
    check = machine._trace_reader()
    assert check.state == "note"
    assert check.remedy == "Install a C compiler, then neuron-explorer again"


def test_what_bounds_the_memory_of_imports_is_said_where_it_is_not_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from explorer.collectors.kineto import compiled

    monkeypatch.delenv("NE_NO_SCANNER", raising=False)
    monkeypatch.setattr(compiled, "compiled", lambda: object())
    for part, state in ((object(), "ok"), (None, "note")):
        monkeypatch.setattr(compiled, "compiled_scratch", lambda part=part: part)
        check = machine._trace_reader()
        assert check.state == state
        assert ("160 bytes a row" in check.found) is (state == "note")
