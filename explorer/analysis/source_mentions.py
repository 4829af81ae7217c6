"""Where the recorded sources name something: for advice whose place no event tells, such as a setting or a dtype."""

from __future__ import annotations

import re

from explorer.analysis.rule_context import RuleContext


def mentions(context: RuleContext, pattern: str) -> list[tuple[str, int, str]]:
    """(file, line, stripped code) of each line outside comments that the pattern matches, by file and line."""
    wanted = re.compile(pattern)
    found = []
    for row in context.rows("SELECT DISTINCT file, text FROM sources WHERE text IS NOT NULL ORDER BY file"):
        if not wanted.search(row["text"]):
            continue
        for number, line in enumerate(row["text"].splitlines(), 1):
            if wanted.search(line.split("#", 1)[0]):
                found.append((row["file"], number, line.strip()))
    return found
