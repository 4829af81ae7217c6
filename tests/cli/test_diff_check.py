"""The verbs diff and check, as a shell sees them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from explorer.cli.main import main
from tests.analysis.diff.test_comparison import write
from tests.cli.small_run import write_small_run


@pytest.fixture
def runs(tmp_path: Path) -> tuple[str, str]:
    return write(tmp_path / "a", 1000, "loop()\nx = mm(a, b)\n"), write(
        tmp_path / "b", 1300, "loop()\nx = mm(a, b)\n"
    )


def test_diff_says_verdict_and_cause(runs: tuple[str, str], capsys: Any) -> None:
    assert main(["diff", *runs]) == 0
    text = capsys.readouterr().out
    assert "step 1.20 µs -> 1.50 µs  +25.0%" in text
    assert "verdict: slower" in text
    assert "a.py:2" in text


def test_diff_as_json(runs: tuple[str, str], capsys: Any) -> None:
    assert main(["diff", *runs, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "neuron-explorer/diff/1"
    assert document["verdict"]["answer"] == "slower"
    assert document["explained"]["line"][0]["change_ns"] == 300


def test_check_is_a_gate(runs: tuple[str, str], tmp_path: Path, capsys: Any) -> None:
    before, after = runs
    junit, summary = tmp_path / "junit.xml", tmp_path / "summary.md"
    arguments = ["--max-regression", "5%", "--junit", str(junit), "--summary", str(summary)]
    assert main(["check", after, "--baseline", before, *arguments]) == 1
    assert capsys.readouterr().out.startswith("FAILED       max_regression: step +25.0%")
    assert 'failures="1"' in junit.read_text()
    assert "| FAILED | max_regression |" in summary.read_text()
    assert main(["check", before, "--baseline", after, *arguments]) == 0
    assert main(["check", after, "--baseline", before, "--max-regression", "5%", "--json"]) == 1
    assert '"passed": false' in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--max-regression", "much"], "is not a share"),
        (["--forbid", "host_snyc"], "Did you mean host_sync, host_bound or neuron_host_fallback? docs/rules"),
        (["--forbid", "nonsense"], "Did you mean neuron_tensor_use, neuron_transposes or neuron_errors?"),
        (["--max-memory", "big"], "is not a size"),
        (["--rules", "/nowhere.toml"], "cannot be read"),
    ],
)
def test_wrong_calls(runs: tuple[str, str], arguments: list[str], message: str, capsys: Any) -> None:
    assert main(["check", runs[0], *arguments]) in (2, 3)
    error = capsys.readouterr().err
    assert message in error
    assert "Traceback" not in error


@pytest.mark.parametrize("swapped", [False, True])
def test_a_run_without_steps_has_nothing_to_compare(
    swapped: bool, runs: tuple[str, str], tmp_path: Path, capsys: Any
) -> None:
    empty = str(write_small_run(tmp_path / "empty", steps=0))
    pair = (empty, runs[0]) if swapped else (runs[0], empty)
    assert main(["diff", *pair, "--html", str(tmp_path / "diff.html")]) == 0
    said = f"undecided: no complete step in the run {'before' if swapped else 'after'} to compare"
    out = capsys.readouterr().out
    assert f"verdict: {said}" in out
    assert "no step" in out.splitlines()[0]
    assert "%" not in out.splitlines()[0]
    page = (tmp_path / "diff.html").read_text()
    assert said in page
    assert "95 % interval" not in page
    assert main(["diff", *pair, "--json"]) == 0
    verdict = json.loads(capsys.readouterr().out)["verdict"]
    assert (verdict["answer"], verdict["change"], verdict["low"]) == ("undecided", None, None)
    assert main(["check", pair[1], "--baseline", pair[0], "--max-regression", "5%"]) == 0
    assert "no complete step" in capsys.readouterr().out
