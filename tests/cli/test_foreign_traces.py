"""Every reading verb takes a trace as it is: imported to the cache, read, and nothing crashes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from explorer.cli import main as cli
from explorer.cli.main import VERBS
from tests.traces import trace

READING = [n for n, v in VERBS.items() if v.group == "Read" and n not in ("open", "query", "what-if")]


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def _one_cache(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEURON_EXPLORER_CACHE", str(cache))


@pytest.mark.parametrize("verb", READING)
@pytest.mark.parametrize(
    "name", ["nvidia/hta_triton_example.json.gz", "odd/empty_trace_events.json", "nsys/nsysai_mock.sqlite"]
)
def test_verbs_take_traces(name: str, verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(trace(name))
    code = cli.main([verb, path, "--json"])
    captured = capsys.readouterr()
    if name.startswith("odd") and code == 3:
        assert captured.out == ""
        assert captured.err.count("\n") == 1
        return
    assert code == 0, captured.err
    assert next(iter(json.loads(captured.out))) == "schema"


def test_repaired_input_ends_with_four_and_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    path = str(trace("odd/truncated_json.json"))
    for _ in range(2):
        assert cli.main(["ops", path]) == 4
        captured = capsys.readouterr()
        assert captured.out
        assert "Part of the input was lost or repaired" in captured.err
        assert "neuron-explorer health" in captured.err


def test_rows_that_are_no_events_end_with_four(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "list.json"
    path.write_text("[1, 2]")
    assert cli.main(["health", str(path)]) == 4
    assert "(2 losses, 0 repairs)" in capsys.readouterr().err


def test_what_is_no_trace_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts = {"empty.json": "", "text.json": "hello", "other.json": '{"a": 1}'}
    for name, text in texts.items():
        path = tmp_path / name
        path.write_text(text)
        assert cli.main(["summary", str(path)]) == 3, name
        captured = capsys.readouterr()
        assert captured.out == ""
        assert captured.err.count("\n") == 1
        assert name in captured.err


def test_a_directory_of_ranks_is_one_run(capsys: pytest.CaptureFixture[str]) -> None:
    path = str(trace("nvidia/multirank_dlrm_8x_v100"))
    assert cli.main(["summary", path, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [row["rank"] for row in document["ranks"]] == list(range(8))
