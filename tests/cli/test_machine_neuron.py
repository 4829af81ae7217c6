"""What doctor says about Neuron, on made-up machines."""

from __future__ import annotations

from pathlib import Path

import pytest

from explorer.cli.machine_neuron import neuron_facts
from explorer.collectors.neuron import aws_tool


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(aws_tool, "USUAL_PLACE", str(tmp_path / "none"))
    monkeypatch.delenv(aws_tool.VARIABLE, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


def test_nothing_is_said_where_nothing_is(bare: Path) -> None:
    assert not neuron_facts({}, str(bare)).relevant


def test_a_machine_without_software(bare: Path) -> None:
    (bare / "neuron0").touch()
    (bare / "neuron11").touch()
    facts = neuron_facts({"XLA_IR_DEBUG": "1"}, str(bare))
    assert facts.found == ("2 devices",)
    text = "\n".join(facts.missing)
    assert "torch_neuronx" in text
    assert "raw traces stay unread" in text
    assert "XLA_IR_DEBUG" not in text
    assert "NKI_DEBUG_INFO=1 when compiling (else no source lines of NKI kernels)" in text


def test_a_complete_machine(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (bare / "neuron0").touch()
    package = bare / "lib" / "torch_neuronx" / "profiling"
    package.mkdir(parents=True)
    (package.parent / "__init__.py").write_text("raise RuntimeError('doctor must not import this')\n")
    monkeypatch.syspath_prepend(str(bare / "lib"))
    program = bare / "neuron-explorer"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    debug = dict.fromkeys(("XLA_IR_DEBUG", "XLA_HLO_DEBUG", "NEURON_FRAMEWORK_DEBUG", "NKI_DEBUG_INFO"), "1")
    facts = neuron_facts(debug, str(bare))
    assert facts.found == ("1 devices", "torch_neuronx.profiling", f"AWS's neuron-explorer {program}")
    assert facts.missing == ()
    assert "unset it" in "".join(neuron_facts(debug | {"NEURON_RT_INSPECT_ENABLE": "1"}, str(bare)).missing)
