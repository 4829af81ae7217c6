"""Recorded sources are asked where they name something."""

from __future__ import annotations

from pathlib import Path

from explorer.analysis.rule_context import RuleContext
from explorer.analysis.source_mentions import mentions
from explorer.analysis.step_scope import find_scope
from tests.analysis.run_builder import RunBuilder


def test_lines_are_named_and_comments_are_not(tmp_path: Path) -> None:
    builder = RunBuilder(tmp_path / "run")
    builder.steps(1, 1_000)
    site = builder.line(3, "y = model(x)")
    builder.state(site, 0, 1_000)
    text = "import torch  # not float64\n\nkind = torch.float64  # why?\nother = myfloat64\n# float64\nx = a.double()\n"
    builder.row("sources", file="b.py", sha256="1", text=text)
    builder.row("sources", file="a.py", sha256="2", text="z = np.float64(1)\n")
    run = builder.open()
    context = RuleContext(run.engine, find_scope(run.engine))
    assert mentions(context, r"\bfloat64\b|\.double\(\)") == [
        ("a.py", 1, "z = np.float64(1)"),
        ("b.py", 3, "kind = torch.float64  # why?"),
        ("b.py", 6, "x = a.double()"),
    ]
