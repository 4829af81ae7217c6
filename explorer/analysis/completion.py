"""Names that a query may use, and completion of the word before the cursor."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from explorer.analysis.view import all_views
from explorer.model.tables import TABLES

KEYWORDS = [
    "SELECT",
    "FROM",
    "WHERE",
    "GROUP",
    "BY",
    "ORDER",
    "LIMIT",
    "JOIN",
    "LEFT",
    "USING",
    "AND",
    "OR",
    "NOT",
    "NULL",
    "IS",
    "IN",
    "LIKE",
    "ILIKE",
    "BETWEEN",
    "CASE",
    "WHEN",
    "THEN",
    "ELSE",
    "END",
    "AS",
    "ON",
    "HAVING",
    "DISTINCT",
    "WITH",
    "UNION",
    "ALL",
    "DESC",
    "ASC",
    "count",
    "sum",
    "avg",
    "min",
    "max",
    "quantile",
    "median",
    "coalesce",
    "round",
]

_WORD = re.compile(r"(?:(\w+)\.)?(\w*)$")


@dataclass(frozen=True)
class RelationDoc:
    """A table or view with its columns: (name, type, unit, meaning)."""

    name: str
    kind: str
    doc: str
    columns: tuple[tuple[str, str, str, str], ...]


@cache
def relation_docs() -> dict[str, RelationDoc]:
    """Every documented table and view: views first, both by name."""
    found: dict[str, RelationDoc] = {}
    for name, view in sorted(all_views().items()):
        columns = tuple((c.name, c.type, "" if c.unit == "-" else c.unit, c.doc) for c in view.columns)
        found[name] = RelationDoc(name, "view", view.doc, columns)
    for name, table in sorted(TABLES.items()):
        columns = tuple((c.name, c.type, c.unit, c.doc) for c in table.columns)
        found.setdefault(name, RelationDoc(name, "table", table.doc, columns))
    return found


def complete(text: str, cursor: int) -> tuple[int, list[str]]:
    """Completions of the word that ends at `cursor`: where the word begins, and whole words, likeliest first.

    After a dot: columns of the table that the name or alias before it stands for. Otherwise columns of the tables named
    in the text, then tables and views, then keywords.
    """
    match = _WORD.search(text[:cursor])
    assert match is not None
    owner, word = match.group(1), match.group(2)
    begin = cursor - len(word)
    docs = relation_docs()
    named = _named(text)
    if owner is not None:
        relation = named.get(owner.lower()) or (owner.lower() if owner.lower() in docs else None)
        names = [column[0] for column in docs[relation].columns] if relation else []
        return begin, [name for name in names if name.startswith(word.lower())]
    if not word:
        return begin, []
    columns = [c[0] for relation in dict.fromkeys(named.values()) for c in docs[relation].columns]
    after_from = re.search(r"(?i)\b(from|join)\s+\w*$", text[:cursor]) is not None
    names = [*docs, *columns] if after_from else [*columns, *docs, *KEYWORDS]
    lowered = word.lower()
    return begin, [name for name in dict.fromkeys(names) if name.lower().startswith(lowered) and name != word]


def _named(text: str) -> dict[str, str]:
    """Tables and views in the text by their name and by their alias."""
    docs = relation_docs()
    found: dict[str, str] = {}
    for match in re.finditer(r"(?i)\b(?:from|join|,)\s*(\w+)(?:\s+(?:as\s+)?(\w+))?", text):
        name, alias = match.group(1).lower(), (match.group(2) or "").lower()
        if name in docs:
            found[name] = name
            if alias and alias.upper() not in {word.upper() for word in KEYWORDS}:
                found[alias] = name
    return found
