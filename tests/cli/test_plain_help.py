"""The help of a verb names values as its page does, without the marks of the option parser."""

from __future__ import annotations

import re

import pytest

from explorer.cli.main import VERBS, main
from explorer.cli.plain_help import plain_record


@pytest.mark.parametrize("verb", list(VERBS))
def test_no_help_shows_marks_of_the_parser(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([verb, "--help"]) == 0
    text = capsys.readouterr().out
    assert text.startswith(f"Usage: neuron-explorer {verb}")
    assert re.findall(r"<(?:str|int|float|list|path)\b[^>]*>|x[<>]=?\d|\[\]|\[; ", text) == []
    assert "  -h, --help" in text


@pytest.mark.parametrize(
    ("name", "text", "is_argument", "plain"),
    [
        (
            "-n, --limit <int range>",
            "Most rows  [default: 20; x>=0]",
            False,
            ("-n, --limit N", "Most rows  [default: 20]"),
        ),
        ("--rank <int range>", "Only this rank  [x>=0]", False, ("--rank N", "Only this rank")),
        ("--port <int range>", "Port  [default: 1; 0<=x<=65535]", False, ("--port N", "Port  [default: 1]")),
        ("--timeout <float range>", "Time  [x>=0.1; required]", False, ("--timeout N", "Time  [required]")),
        ("--by <str>", "line, or site", False, ("--by TEXT", "line, or site")),
        ("--format <table|csv>", "Form", False, ("--format table|csv", "Form")),
        ("RUN <str>", "A run  [required]", True, ("RUN", "A run  [required]")),
        ("SRC... <list[str]>", "Traces", True, ("SRC...", "Traces")),
    ],
)
def test_plain_record(name: str, text: str, is_argument: bool, plain: tuple[str, str]) -> None:
    assert plain_record(name, text, is_argument=is_argument) == plain
