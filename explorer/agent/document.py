"""An answer as a JSON document that fits a token budget: cut at a row boundary, with a pointer to the rest."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

CHARACTERS_PER_TOKEN = 3.2
"""Lower than the usual 4 for English: JSON keys, digits and paths cost more tokens per character."""

SIGNIFICANT_DIGITS = 5


def tokens(text: str) -> int:
    """An upper estimate of how many tokens a text costs a language model."""
    return math.ceil(len(text) / CHARACTERS_PER_TOKEN)


@dataclass(frozen=True)
class Document:
    """One answer.

    Args:
        schema: name and version, such as 'neuron-explorer/lines/1'.
        fields: everything but the rows, in order.
        rows_key: the key under which the rows stand; empty for a document without rows.
        rows: the rows of this page.
        offset: how many rows stand before this page.
        total: rows in all.
    """

    schema: str
    fields: Mapping[str, Any]
    rows_key: str = ""
    rows: tuple[Mapping[str, Any], ...] = ()
    offset: int = 0
    total: int = 0
    extra: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self, max_tokens: int | None = None) -> dict[str, Any]:
        """The document. With `max_tokens` rows are left off the end until it fits; `next_cursor` points at the rest.

        A page has at least one row of those there are, and the fields before the rows are never cut: a budget too small
        for them is exceeded, so that whoever follows `next_cursor` gets on.
        """
        shown = len(self.rows)
        document = self._dict(shown)
        if max_tokens is None or not self.rows_key:
            return document
        low, high = min(1, shown), shown
        while low < high:
            middle = (low + high + 1) // 2
            if tokens(_text(self._dict(middle))) <= max_tokens:
                low = middle
            else:
                high = middle - 1
        return self._dict(low)

    def to_json(self, max_tokens: int | None = None) -> str:
        """`to_dict()` as compact JSON text."""
        return _text(self.to_dict(max_tokens))

    def _dict(self, count: int) -> dict[str, Any]:
        document: dict[str, Any] = {"schema": self.schema, **{k: plain(v) for k, v in self.fields.items()}}
        if self.rows_key:
            document[self.rows_key] = [plain(row) for row in self.rows[:count]]
            document["total"] = self.total
            after = self.offset + count
            document["next_cursor"] = str(after) if after < self.total else None
        document.update((key, plain(value)) for key, value in self.extra.items())
        return document


def plain(value: Any) -> Any:
    """A value as JSON holds it, without what costs tokens and says nothing: nulls in rows, digits beyond the fifth."""
    if isinstance(value, float):
        if not math.isfinite(value):
            return None
        return float(f"{value:.{SIGNIFICANT_DIGITS}g}")
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items() if item is not None}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else plain(float(value))
    return str(value)


def _text(document: Mapping[str, Any]) -> str:
    return json.dumps(document, ensure_ascii=False, separators=(",", ":"))
