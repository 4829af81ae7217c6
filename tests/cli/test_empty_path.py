"""An empty path, as an unset shell variable leaves it, is named as what it is, and is not the working directory."""

from __future__ import annotations

from pathlib import Path

import pytest

from explorer.cli import main as cli
from explorer.cli.main import VERBS
from explorer.model.errors import EXIT_USAGE
from tests.cli.small_run import write_small_run

ARGUMENTS = {
    "query": ["SELECT 1"],
    "what-if": ["--remove", "sync"],
    "diff": [""],
    "export": ["-o", "x.csv", "--view", "ops"],
}
VERBS_WITH_RUN = [
    name
    for name, verb in VERBS.items()
    if verb.group == "Read" or name in ("report", "export", "diff", "verify")
]


@pytest.mark.parametrize("verb", VERBS_WITH_RUN)
def test_every_verb_says_that_the_path_is_empty(
    verb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(write_small_run(tmp_path / "run"))
    assert cli.main([verb, "", *ARGUMENTS.get(verb, [])]) == EXIT_USAGE
    out = capsys.readouterr()
    assert out.err.startswith("neuron-explorer: The path of the run is empty.")
    assert out.out == ""


def test_an_empty_word_is_no_verb(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([""]) == EXIT_USAGE
    assert capsys.readouterr().err.startswith("neuron-explorer: The verb or path is empty.")
