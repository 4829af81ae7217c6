"""What each piece of a SQL text is, for colouring it while it is typed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

_TOKEN = re.compile(
    r"(?P<comment>--[^\n]*|/\*.*?(?:\*/|\Z))"
    r"|(?P<string>'(?:[^']|'')*(?:'|\Z))"
    r'|(?P<quoted>"(?:[^"]|"")*(?:"|\Z))'
    r"|(?P<number>\b\d+(?:\.\d+)?(?:e[+-]?\d+)?\b)"
    r"|(?P<word>[^\W\d]\w*)",
    re.IGNORECASE | re.DOTALL,
)
_CALL = re.compile(r"\s*\(")
_MORE_KEYWORDS = """
    asof array begin by cast cross cube current date describe except exclude exists explain false filter first following
    full inner interval intersect last lateral map natural nulls offset outer over partition positional preceding qualify
    range recursive replace right rollup row rows sample semi anti set sets show some struct summarize table then time
    timestamp true try_cast unbounded unnest values window within grouping collate escape similar to any
"""


@cache
def _keywords() -> frozenset[str]:
    from explorer.analysis.completion import KEYWORDS

    return frozenset([*(word.lower() for word in KEYWORDS if word.isupper()), *_MORE_KEYWORDS.split()])


@cache
def _relations() -> frozenset[str]:
    from explorer.analysis.completion import relation_docs

    return frozenset(relation_docs())


def sql_pieces(text: str) -> Iterator[tuple[int, int, str]]:
    """(begin, end, kind) of every piece that has a colour: comment, string, number, keyword, function or relation."""
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup or ""
        if kind == "quoted":
            continue
        if kind == "word":
            word = match.group().lower()
            if word in _keywords():
                kind = "keyword"
            elif word in _relations():
                kind = "relation"
            elif _CALL.match(text, match.end()):
                kind = "function"
            else:
                continue
        yield match.start(), match.end(), kind
