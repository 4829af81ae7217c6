"""The query API: published schemas, pages, budgets, drilling down."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from explorer import agent
from explorer.agent.document import Document, tokens
from explorer.agent.json_schema import DOCUMENTS, json_schema
from explorer.analysis.run import Run
from explorer.model.errors import QueryError, UsageError
from tests.agent.conftest import write_run


def documents(run: Run) -> dict[str, Document]:
    answers = {
        name: getattr(agent, name)(run)
        for name in (
            "summary",
            "health",
            "lines",
            "ops",
            "kernels",
            "modules",
            "steps",
            "breakdown",
            "gaps",
            "memory",
        )
    }
    return {
        **answers,
        "findings": agent.bottlenecks(run, detail="full"),
        "findings-brief": agent.bottlenecks(run),
        "what-if": agent.what_if(run, remove=["sync"]),
        "query": agent.sql(run, "SELECT 1 AS one"),
        "critical-path": agent.critical_path(run),
        "source": agent.source(run, "train.py", around=8),
        "event": agent.event(run, "0:1"),
        "finding": agent.finding(run, run.bottlenecks()[0].id),
        "collectives": agent.collectives(run),
        "neighbours": agent.neighbours(run, "0:2"),
        "compare": agent.compare(run, run),
        "schema": agent.schema(run),
    }


def test_every_document_has_a_schema_and_keeps_it(run: Run) -> None:
    answers = documents(run)
    assert sorted(answers) == list(DOCUMENTS)
    for name, answer in answers.items():
        document = json.loads(answer.to_json())
        assert next(iter(document)) == "schema"
        jsonschema.validate(document, json_schema(name))


def test_the_columns_of_a_relation_keep_the_schema_too(run: Run) -> None:
    jsonschema.validate(json.loads(agent.schema(run, "events").to_json()), json_schema("schema"))


def test_every_verb_that_gives_rows_has_pages(run: Run) -> None:
    one = {"finding", "event", "what_if"}
    for name, verb in agent.ANSWERS.items():
        parameters = inspect.signature(verb).parameters
        assert ({"limit", "cursor"} <= set(parameters)) is (name not in one), name


def test_sql_goes_on_where_a_page_or_a_budget_ended(run: Run) -> None:
    text = "SELECT event_id FROM events ORDER BY event_id"
    whole = [row["event_id"] for row in run.sql(text).rows()]
    seen: list[int] = []
    cursor = None
    while True:
        document = agent.sql(run, text, limit=15, cursor=cursor).to_dict(max_tokens=100)
        seen += [row["event_id"] for row in document["rows"]]
        cursor = document["next_cursor"]
        if cursor is None:
            break
        assert document["rows"]
    assert seen == whole


def test_compare_says_what_changed(run: Run, tmp_path: Path) -> None:
    from explorer.analysis.run import open_run

    with open_run(write_run(tmp_path / "slower", python_us=500)) as slower:
        document = agent.compare(run, slower, limit=1).to_dict()
    assert (document["step_before_ns"], document["step_after_ns"]) == (1_000_000, 1_200_000)
    assert document["verdict"]["answer"] == "slower"
    (change,) = document["changes"]
    assert (change["key"], change["change_ns"]) == ("train.py:7", 200_000)
    assert document["next_cursor"] == "1"


def test_the_published_findings_contract_is_the_one_of_the_command_line(run: Run) -> None:
    jsonschema.validate(json.loads(run.bottlenecks().to_json()), json_schema("findings"))


def test_pages_meet_without_gap_or_overlap(run: Run) -> None:
    whole = agent.steps(run, limit=1000).to_dict()["rows"]
    pages: list[Any] = []
    cursor = None
    while True:
        document = agent.steps(run, limit=3, cursor=cursor).to_dict()
        pages += document["rows"]
        cursor = document["next_cursor"]
        if cursor is None:
            break
    assert pages == whole
    assert len(whole) == 10


@given(st.integers(0, 3000))
def test_a_budget_cuts_at_a_row_and_points_at_the_rest(budget: int) -> None:
    rows = tuple({"n": number, "text": "x" * (number % 50)} for number in range(60))
    document = Document("s/1", {"run": "r"}, "rows", rows, 0, 60)
    cut = document.to_dict(budget)
    shown = len(cut["rows"])
    assert cut["rows"] == list(rows[:shown])
    assert cut["next_cursor"] == (str(shown) if shown < 60 else None)
    assert shown
    if shown > 1:
        assert tokens(document.to_json(budget)) <= budget
    if shown < 60:
        more = Document("s/1", {"run": "r"}, "rows", rows[: shown + 1], 0, 60).to_json()
        assert tokens(more) > budget


def test_bottlenecks_name_the_line_within_1500_tokens(run: Run) -> None:
    answer = agent.bottlenecks(run)
    assert tokens(answer.to_json()) <= 1500
    document = answer.to_dict()
    assert document["step_ns"] == 1_000_000
    first = document["findings"][0]
    assert (first["lines"][0]["file"], first["lines"][0]["line"]) == ("train.py", 9)
    whole = agent.finding(run, first["id"]).to_dict()["finding"]
    assert whole["evidence"][0]["sql"].upper().lstrip().startswith(("SELECT", "WITH"))
    for evidence in whole["evidence"]:
        agent.sql(run, evidence["sql"])


def test_drilling_down_from_a_kernel(run: Run) -> None:
    facts = agent.event(run, "0:3").to_dict()
    assert facts["op"]["id"] == "0:1"
    assert facts["launch"]["name"] == "cudaLaunchKernel"
    assert facts["lines"] == [
        {"file": "train.py", "line": 8, "function": "step", "code": "y = a @ b", "share": 1.0}
    ]
    around = {row["relation"]: row["id"] for row in agent.neighbours(run, "0:2").to_dict()["events"]}
    assert around == {"parent": "0:1"}
    assert [row["relation"] for row in agent.neighbours(run, "0:1").to_dict()["events"]] == [
        "child",
        "after",
        "after",
        "after",
    ]


def test_long_names_are_cut(run: Run) -> None:
    name = agent.kernels(run).to_dict()["rows"][0]["name"]
    assert len(name) == 241
    assert name.endswith("…")


def test_what_if_predicts_the_removed_line(run: Run) -> None:
    document = agent.what_if(run, remove=["line=train.py:7"]).to_dict()
    assert document["step_before_ns"] == 1_000_000
    assert document["saving_ns"] == 300_000


def test_source_shows_text_and_costs(run: Run) -> None:
    lines = agent.source(run, "train.py", around=8, context=1).to_dict()["lines"]
    assert [(line["line"], line["text"]) for line in lines] == [(7, "line 7"), (8, "line 8"), (9, "line 9")]
    assert lines[0]["cost_ns"] == 3_000_000
    assert lines[1]["device_ns"] == 5_000_000


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda run: agent.lines(run, limit=0), "not between 1 and 1000"),
        (lambda run: agent.lines(run, cursor="x"), "not a cursor"),
        (lambda run: agent.finding(run, "nothing/1"), "no finding"),
        (lambda run: agent.event(run, "12"), "RANK:EVENT_ID"),
        (lambda run: agent.event(run, "0:99999"), "no event"),
        (lambda run: agent.source(run, "other.py"), "No line"),
        (lambda run: agent.schema(run, "evnts"), "Did you mean 'events'"),
        (lambda run: agent.what_if(run, remove=["line=train.py:99"]), "selects nothing"),
        (lambda run: agent.bottlenecks(run, detail="all"), "not brief or full"),
        (lambda run: agent.compare(run, run, by="colour"), "Cannot compare by"),
    ],
)
def test_wrong_calls_say_what_to_do(run: Run, call: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        call(run)


def test_sql_is_sandboxed(run: Run) -> None:
    with pytest.raises(QueryError):
        agent.sql(run, "COPY events TO '/tmp/stolen.csv'")
    assert agent.sql(run, "SELECT * FROM events", limit=5).to_dict()["truncated"] is True


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda run: agent.ops(run, limit=1.5), "limit 1.5 is not a whole number"),
        (lambda run: agent.ops(run, limit="5"), "limit '5' is not a whole number"),
        (lambda run: agent.ops(run, limit=None), "limit None is not a whole number"),
        (lambda run: agent.ops(run, limit=True), "limit True is not a whole number"),
        (lambda run: agent.ops(run, cursor=5), "cursor 5 is not a text"),
        (lambda run: agent.ops(run, cursor="9" * 5000), "not a cursor"),
        (lambda run: agent.ops(run, cursor="²"), "not a cursor"),
        (lambda run: agent.lines(run, file=3), "file 3 is not a text"),
        (lambda run: agent.source(run, "train.py", around="8"), "around '8' is not a whole number"),
        (lambda run: agent.event(run, 5), "event_id 5 is not a text"),
        (lambda run: agent.event(run, "²:1"), "RANK:EVENT_ID"),
        (lambda run: agent.event(run, f"0:{'9' * 30}"), "RANK:EVENT_ID"),
        (lambda run: agent.what_if(run, remove="sync"), "remove 'sync' is not a list of texts"),
        (lambda run: agent.what_if(run, speedup=[2]), "is not a list of texts"),
        (lambda run: agent.sql(run, None), "text None is not a text"),
        (lambda run: agent.compare(run, run, by=3), "by 3 is not a text"),
        (lambda run: agent.schema(run, 3), "name 3 is not a text"),
    ],
)
def test_arguments_of_a_wrong_type_are_named(run: Run, call: Any, message: str) -> None:
    with pytest.raises(UsageError) as error:
        call(run)
    assert message in str(error.value)


def test_every_argument_of_every_verb_is_checked(run: Run) -> None:
    kinds = {"int", "int | None", "str", "str | None", "Iterable[str]"}
    for name, verb in agent.ANSWERS.items():
        for parameter in inspect.signature(verb).parameters.values():
            assert parameter.annotation in {*kinds, "Run"}, (name, parameter)
            if parameter.annotation != "Run":
                required = {
                    other.name: run if other.annotation == "Run" else "0:1"
                    for other in inspect.signature(verb).parameters.values()
                    if other.default is inspect.Parameter.empty
                }
                with pytest.raises(UsageError, match=parameter.name):
                    verb(**{**required, parameter.name: object()})


def test_a_small_budget_still_gets_on(run: Run) -> None:
    seen, cursor = [], None
    for _ in range(20):
        document = agent.steps(run, cursor=cursor).to_dict(max_tokens=1)
        seen += document["rows"]
        cursor = document["next_cursor"]
        if cursor is None:
            break
    assert seen == agent.steps(run).to_dict()["rows"]


def test_pages_behind_what_an_answer_may_hold_are_refused(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("explorer.analysis.sandbox.MAX_BYTES", 1000)
    text = "SELECT repeat('x', 400) AS x FROM range(50)"
    first = agent.sql(run, text).to_dict()
    assert first["rows"]
    with pytest.raises(QueryError, match="larger than an answer may be"):
        agent.sql(run, text, cursor=first["next_cursor"])


def test_sql_keeps_columns_of_one_name(run: Run) -> None:
    document = agent.sql(run, "SELECT 1 AS a, 2 AS a").to_dict()
    assert document["columns"] == ["a", "a_1"]
    assert document["rows"] == [{"a": 1, "a_1": 2}]
