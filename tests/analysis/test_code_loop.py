"""Loops found from visits and source text."""

from __future__ import annotations

from pathlib import Path

import pytest

from explorer.analysis.code_loop import CodeLines, CodeLoop
from explorer.analysis.rule_context import RuleContext
from explorer.analysis.step_scope import find_scope
from tests.analysis.run_builder import RunBuilder


def loops(tmp_path: Path, lines: list[tuple[str, int]]) -> list[CodeLoop]:
    """Lines as (code, visits in the only step), one after the other in one function."""
    builder = RunBuilder(tmp_path / "run")
    builder.steps(1, 10_000)
    now = 0.0
    for number, (code, visits) in enumerate(lines, 10):
        site = builder.line(number, code, "f")
        for _ in range(visits):
            builder.state(site, now, 5)
            builder.op("aten::add", now + 1, 2, site=site)
            now += 5
    run = builder.open()
    return CodeLines(RuleContext(run.engine, find_scope(run.engine))).loops(16)


@pytest.mark.parametrize(
    ("header", "body", "indexes"),
    [
        ("for i in range(n):", "out[i] = x[i] * 2", True),
        ("for i, row in enumerate(rows):", "y = x[:, i : i + 1]", True),
        ("for t in range(T):  # time", "h = cell(x[t], h)", True),
        ("for layer in layers:", "y = layer(y[0])", False),
        ("while i < n:", "total += x[i]", True),
    ],
)
def test_a_loop_with_its_variables(tmp_path: Path, header: str, body: str, indexes: bool) -> None:
    (found,) = loops(tmp_path, [("before()", 1), (header, 33), (body, 32), ("after()", 1)])
    assert found.header.code == header
    assert [line.code for line in found.body] == [body]
    assert found.passes == 33
    assert found.indexes(body) is indexes


def test_few_passes_are_no_loop(tmp_path: Path) -> None:
    assert loops(tmp_path, [("for i in range(8):", 9), ("x[i]", 8)]) == []


def test_a_comprehension_is_its_own_body(tmp_path: Path) -> None:
    (found,) = loops(tmp_path, [("y = torch.stack([x[i, j[i]] for i in range(128)])", 40)])
    assert found.targets == ("i",)
    assert found.body == (found.header,)


def test_what_a_line_does_with_its_comprehension_goes_with_it(tmp_path: Path) -> None:
    builder = RunBuilder(tmp_path / "run")
    builder.steps(1, 10_000)
    code = "y = torch.stack([x[i, j[i]] for i in range(128)])"
    inner, outer = builder.line(10, code, "f.<locals>.<listcomp>"), builder.line(10, code, "f")
    for i in range(40):
        builder.state(inner, i * 5, 5, stack=builder.stack(inner, outer))
        builder.op("aten::select", i * 5 + 1, 2, site=inner)
    builder.state(outer, 200, 50)
    builder.op("aten::stack", 201, 40, site=outer)
    run = builder.open()
    (found,) = CodeLines(RuleContext(run.engine, find_scope(run.engine))).loops(16)
    assert found.header.site_id == inner
    assert [line.site_id for line in found.lines] == [inner, outer]


def test_lines_after_the_loop_do_not_belong_to_it(tmp_path: Path) -> None:
    (found,) = loops(
        tmp_path, [("for i in range(n):", 41), ("a(x[i])", 40), ("if rare:", 40), ("b()", 2), ("c()", 1)]
    )
    assert [line.code for line in found.body] == ["a(x[i])", "if rare:"]


@pytest.mark.parametrize(
    ("code", "source"),
    [
        ("loss = stack([f(i) for i in range(len(labels))]).mean()", "range(len(labels))"),
        ("done = [x[i] for i in order if keep[i]]", "order"),
        ("done = {i: x[i] for i in rows[1:] for _ in y}", "rows[1:]"),
    ],
)
def test_what_a_comprehension_runs_over(tmp_path: Path, code: str, source: str) -> None:
    (found,) = loops(tmp_path, [(code, 32)])
    assert found.source == source
    assert found.is_comprehension
