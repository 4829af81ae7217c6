"""Everything a user can name has its documentation: verbs and their options, tables, views, columns, words, rules."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from explorer.cli.main import VERBS, verb_options

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"


@pytest.mark.parametrize("verb", list(VERBS))
def test_every_verb_has_a_page_that_names_its_options(verb: str) -> None:
    page = DOCS / "verbs" / f"{verb}.md"
    assert page.is_file(), f"docs/verbs/{verb}.md is missing"
    text = page.read_text()
    assert text.startswith(f"# {verb}\n")
    missing = [option for option in verb_options(verb) if option not in text]
    assert not missing, f"docs/verbs/{verb}.md does not name {', '.join(missing)}"


def test_every_page_of_a_verb_belongs_to_one() -> None:
    assert {path.stem for path in (DOCS / "verbs").glob("*.md")} == set(VERBS)


def test_the_index_links_every_verb_and_page() -> None:
    index = (DOCS / "index.md").read_text()
    missing = [
        str(path.relative_to(DOCS))
        for path in [*DOCS.glob("*.md"), *(DOCS / "verbs").glob("*.md")]
        if path.name != "index.md" and f"({path.relative_to(DOCS)}" not in index
    ]
    assert not missing, f"docs/index.md does not link {', '.join(missing)}"


def test_pages_made_from_the_code_are_up_to_date() -> None:
    """Tables, views, columns and words: their text lives in the code, and `make docs` prints it."""
    done = subprocess.run(
        [sys.executable, str(DOCS / "generate.py"), "--check"],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr


def test_every_rule_has_a_page_that_names_its_settings() -> None:
    from explorer.analysis.findings import all_rules

    for rule in all_rules():
        page = DOCS / "rules" / f"{rule.name}.md"
        assert page.is_file(), f"docs/rules/{rule.name}.md is missing"
        text = page.read_text()
        missing = [setting.name for setting in rule.settings if setting.name not in text]
        assert not missing, f"docs/rules/{rule.name}.md does not name {', '.join(missing)}"


def test_every_environment_variable_is_documented() -> None:
    names = re.compile(r"[\"'](NE_[A-Z_]+|NEURON_EXPLORER_[A-Z_]+)[\"']")
    used = {
        name
        for path in (ROOT / "explorer").rglob("*.py")
        for name in names.findall(path.read_text())
        if not name.startswith("NE_CAPTURE_")
    }
    texts = "\n".join(path.read_text() for path in DOCS.rglob("*.md"))
    assert not {name for name in used if name not in texts}
