"""Every rule has a page that names its settings and their defaults, and states where each threshold comes from."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from explorer.analysis.findings import all_rules
from explorer.analysis.rule import NEEDS, Rule

PAGES = Path(__file__).resolve().parents[2] / "docs" / "rules"


@pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.name)
def test_rule_is_documented(rule: Rule) -> None:
    page = PAGES / f"{rule.name}.md"
    assert page.is_file(), f"docs/rules/{rule.name}.md is missing"
    text = page.read_text(encoding="utf-8")
    assert rule.title in text
    for setting in rule.settings:
        assert re.search(rf"\b{setting.name}\b", text), f"{page.name} does not name {setting.name}"
        assert setting.doc
        assert setting.source
    assert set(rule.needs) <= set(NEEDS)


def test_pages_have_rules() -> None:
    known = {rule.name for rule in all_rules()}
    assert {page.stem for page in PAGES.glob("*.md")} - known == {"index"}


@pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.name)
def test_the_table_shows_the_defaults(rule: Rule) -> None:
    text = (PAGES / f"{rule.name}.md").read_text(encoding="utf-8")
    for setting in rule.settings:
        row = next(
            line
            for line in text.splitlines()
            if line.startswith("|") and re.search(rf"\b{setting.name}\b", line)
        )
        cells = [cell.strip().replace(",", "").replace("_", "") for cell in row.split("|")]
        assert f"{setting.default:g}" in cells, row
