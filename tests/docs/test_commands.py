"""Every `neuron-explorer` command that a page shows names a verb that exists and options that it takes."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from explorer.cli.main import VERBS, verb_options

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
SHORT = {"-o", "-n", "-h"}
FENCED = re.compile(r"^```\w+\n(.*?)^```", re.MULTILINE | re.DOTALL)
INDENTED = re.compile(r"^    .+$", re.MULTILINE)
COMMAND = re.compile(r"^\s*(?:\$ |!|- run: |run: )?neuron-explorer +(.+)$", re.MULTILINE)
INLINE = re.compile(r"`neuron-explorer +([^`]+)`")


def commands(text: str) -> list[str]:
    """What stands behind `neuron-explorer` in blocks and between backquotes, without comments."""
    code = "\n".join(FENCED.findall(text) + INDENTED.findall(text))
    found = COMMAND.findall(code) + [" ".join(words.split()) for words in INLINE.findall(text)]
    return [re.split(r"\s#\s|\s[|>]|;", command)[0].strip() for command in found]


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_commands_are_right(page: Path) -> None:
    for command in commands(page.read_text()):
        # Usage lines (`[-o RUN] [OPTIONS] -- python`) name options in brackets.
        words = shlex.split(re.sub(r"[\[\]\\]", " ", command))
        verb = words[0]
        if verb.startswith("--"):
            assert verb in ("--help", "--version"), command
            continue
        if verb not in VERBS:
            assert "/" in verb or verb.isupper() or ".json" in verb, f"there is no verb {verb}: {command}"
            verb = "open"
        ours = words[1 : words.index("--")] if "--" in words else words[1:]
        known = {*verb_options(verb), *SHORT, "--help"}
        wrong = [
            word
            for word in ours
            if re.match(r"--?[a-z]", word) and not set(word.split("=")[0].split("|")) <= known
        ]
        assert not wrong, f"{verb} takes no {wrong[0]}: {command}"
