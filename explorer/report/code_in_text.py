"""Code inside sentences: advice names calls and lines of the program, which pages show as code."""

from __future__ import annotations

import re
from collections.abc import Iterator

_NAME = r"[A-Za-z_]\w*"
_CODE = re.compile(
    r"`(?P<quoted>[^`]+)`"
    r"|(?<![\w./-])(?!e\.g\b|i\.e\b)(?P<bare>"
    r"[\w./-]*\.py(?::\d+)?(?!\w|\.\w)"
    rf"|(?:[.@]?{_NAME}(?:\.{_NAME})*)\((?:[^()`]|\([^()`]*\))*\)"
    r"|--[a-z][\w-]*"
    rf"|(?:@?{_NAME})?(?:\.{_NAME})+(?:=\w+(?:\.\w+)*)?"
    rf"|{_NAME}=\w+(?:[.:]\w+)*"
    r"|\w*[A-Za-z]\w*_\w+|_\w+"
    r")(?![\w(/])"
)
"""What stands between backquotes; and without them a file, a call, an option, a dotted name, an argument, a name with an
underscore."""


def pieces(text: str) -> Iterator[tuple[str, bool]]:
    """The text in pieces, each with whether it is code. Backquotes around code are left off."""
    done = 0
    for found in _CODE.finditer(text):
        if found.start() > done:
            yield text[done : found.start()], False
        yield found["quoted"] or found["bare"], True
        done = found.end()
    if done < len(text):
        yield text[done:], False
