"""Names that a trace's maker chose: no escape sequence of theirs acts on the terminal, no endless word floods it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from explorer.cli import main as cli
from explorer.cli.main import VERBS
from explorer.cli.units import ACTING, harmless, shortened

READING = [
    n for n, v in VERBS.items() if v.group == "Read" and n not in ("open", "query", "source", "what-if")
]
NAMES = (
    "\x1b[31mred\x1b[0m",
    "\x9b31mC1",
    "\u202eleft",
    "[bold]x[/bold] [/]",
    "x" * 5000,
    "\u6f22" * 400,
    "a\nb\tc\r",
    "",
    "\x7f",
)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> str:
    events = []
    for number, name in enumerate(NAMES * 3):
        start, link = 1000 + 40 * number, {"External id": number + 1, "correlation": number + 1}
        both = {"ts": start, "ph": "X", "name": name}
        events += [
            {**both, "cat": "cpu_op", "dur": 30, "pid": 1, "tid": 1, "args": link},
            {
                **both,
                "cat": "python_function",
                "dur": 33,
                "pid": 1,
                "tid": 1,
                "name": f"{name}.py(3): {name}",
            },
            {
                **both,
                "cat": "kernel",
                "ts": start + 5,
                "dur": 20,
                "pid": 0,
                "tid": 7,
                "args": {**link, "stream": 7},
            },
        ]
    path = tmp_path_factory.mktemp("hostile") / "names.json"
    device = {"id": 0, "name": f"{NAMES[0]}{NAMES[4]}"}
    path.write_text(json.dumps({"traceEvents": events, "deviceProperties": [device]}))
    return str(path)


@pytest.mark.parametrize("verb", READING)
def test_no_character_of_a_name_acts_on_the_terminal(
    verb: str, hostile: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert cli.main([verb, hostile]) in (0, 4)
    out = capsys.readouterr()
    assert not {chr(code) for code in ACTING} & set(out.out + out.err)
    assert out.out.count("\n") < 80
    assert cli.main([verb, hostile, "--json"]) in (0, 4)
    text = capsys.readouterr().out
    assert not {chr(code) for code in ACTING} & set(text)
    json.loads(text)


def test_json_keeps_what_acts_as_data(hostile: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["kernels", hostile, "--json", "--limit", "0"]) in (0, 4)
    names = {row["name"] for row in json.loads(capsys.readouterr().out)["rows"]}
    assert set(NAMES[:3]) <= names


def test_an_error_about_a_path_is_one_harmless_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["ops", str(tmp_path / "\x1b]0;title\x07\nsecond.json")]) == 3
    assert (
        capsys.readouterr().err
        == f"neuron-explorer: {tmp_path}/ ]0;title  second.json does not exist. Give a run directory or a trace file.\n"
    )


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\x1b[1mb", "a [1mb"),
        ("tab\tline\n", "tab\tline\n"),
        ("\u2067x\x85", " x "),
        ("\u00e9\u6f22", "\u00e9\u6f22"),
    ],
)
def test_harmless(text: str, shown: str) -> None:
    assert harmless(text) == shown


def test_only_endless_words_are_shortened() -> None:
    assert shortened("word " * 200) == "word " * 200
    assert shortened("see " + "x" * 1000, 10) == "see xxxxx…xxxxx"


def test_what_prints_text_as_it_is_cannot_act_either(
    hostile: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    named = tmp_path / "\u202ename.json"
    named.write_text(Path(hostile).read_text())
    assert cli.main(["report", hostile, "--format", "md"]) in (0, 4)
    assert cli.main(["what-if", hostile, "--speedup", "op=\u202eleft:2x"]) in (0, 4)
    assert cli.main(["ops", str(named)]) in (0, 4)
    assert cli.main(["cache", "list"]) == 0
    statement = 'SELECT name AS "\u202etitle" FROM kernels'
    assert cli.main(["query", hostile, statement]) in (0, 4)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert cli.main(["query", hostile, statement, "--format", "csv"]) in (0, 4)
    out = capsys.readouterr()
    assert "left" in out.out
    assert not {chr(code) for code in ACTING} & set(out.out + out.err)


def test_csv_for_another_program_keeps_every_character(
    hostile: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["query", hostile, "SELECT name FROM kernels", "--format", "csv"]) in (0, 4)
    assert "\u202eleft\n" in capsys.readouterr().out
