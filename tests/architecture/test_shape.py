"""The shape of the code: small files, telling names, nothing that names another place."""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "explorer"
MOST_LINES = 500
TO_BE_SPLIT: set[str] = set()
"""Files that have outgrown the limit. The list only gets shorter."""
EMPTY_NAMES = {"utils", "helpers", "misc", "common", "manager", "base", "util", "helper", "stuff", "tools"}


def tracked(*patterns: str) -> list[Path]:
    """Files of the repository; the working tree's where this is no checkout."""
    done = subprocess.run(
        ["git", "ls-files", "-z", *patterns], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if done.returncode:
        return [path for pattern in patterns for path in ROOT.rglob(pattern) if ".venv" not in path.parts]
    return [ROOT / name for name in done.stdout.split("\0") if name and (ROOT / name).is_file()]


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: str(path.relative_to(ROOT)))
def test_files_are_small_and_say_what_they_are(path: Path) -> None:
    text = path.read_text()
    too_long = len(text.splitlines()) > MOST_LINES
    assert too_long == (str(path.relative_to(ROOT)) in TO_BE_SPLIT), "one idea per file"
    assert path.stem not in EMPTY_NAMES
    assert not text.strip() or ast.get_docstring(ast.parse(text)), "a module begins with what it is"


def test_sql_files_are_small() -> None:
    long = [path.name for path in PACKAGE.rglob("*.sql") if len(path.read_text().splitlines()) > 200]
    assert not long


def test_public_functions_have_docstrings() -> None:
    bare = []
    for path in PACKAGE.rglob("*.py"):
        if {"tui", "bootstrap", "rules"} & set(path.parts):
            continue
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
                short = len(node.body) <= 1
                if not ast.get_docstring(node) and not short:
                    bare.append(f"{path.relative_to(ROOT)}:{node.lineno} {node.name}")
    assert not bare


def test_no_leftovers() -> None:
    """No notes to self, no conflict marks, no absolute paths of one machine."""
    words = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b|^(<{7}|>{7}) |/work/(main|shared)\b", re.MULTILINE)
    found = [
        f"{path.relative_to(ROOT)}: {match.group(0).strip()}"
        for path in tracked("*.py", "*.md", "*.sql", "*.toml", "Makefile")
        if path != Path(__file__).resolve()
        for match in words.finditer(path.read_text(errors="replace"))
    ]
    assert not found


def test_links_between_documents_lead_somewhere() -> None:
    link = re.compile(r"\]\((?!https?:|mailto:|#)([^)#\s]+)")
    dead = [
        f"{path.relative_to(ROOT)} -> {target}"
        for path in tracked("*.md")
        for target in link.findall(path.read_text())
        if not (path.parent / target).exists()
    ]
    assert not dead
