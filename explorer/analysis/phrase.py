"""Numbers as words: how an evidence statement shows the values of the row its SQL returns."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from explorer.model import quantity

ROOT_MODULE = "(root)"
"""The name of the module that holds all others: it has no path."""
_FIELD = re.compile(r"\{(\w+)\}")
_ONE = re.compile(
    r"(?<![\w.,])(?<!rank )(?<!Rank )(?<!step )(?<!core )(?<!group )1 ((?:\w+ )??)(\w+?)(ies|ches|shes|sses|s)\b"
)
_NO_PLURAL = ("takes", "is", "was", "has", "ms", "its", "this", "less")


def duration_text(duration_ns: float) -> str:
    """Nanoseconds in a sentence: 850 ns, 12.4 µs, 3.05 ms, 1.2 s."""
    return quantity.duration_text(duration_ns, trim=True) if duration_ns else "0 ns"


def place(row: Mapping[str, Any]) -> str | None:
    """`file:line` of a row; the file alone where only the function is known, None where no file is."""
    if not row.get("file"):
        return None
    return f"{row['file']}:{row['line']}" if row["line"] else str(row["file"])


def size_text(size_bytes: float) -> str:
    """Bytes in a sentence: 512 B, 1.5 KiB."""
    return quantity.size_text(size_bytes, trim=True)


def value_text(name: str, value: Any) -> str:
    """A value as its column's name asks: `_ns` a duration, `_bytes` a size, `_share` a percentage, else a number."""
    if value is None:
        return "unknown"
    if isinstance(value, str | bool):
        return str(value)
    if name.endswith("_ns"):
        return duration_text(value)
    if name.endswith("_bytes"):
        return size_text(value)
    if name.endswith("_share"):
        return f"{100 * value:.1f} %"
    number = float(value)
    if number == round(number):
        return f"{number:.0f}"
    return quantity.three_digits(number, trim=True) if abs(number) < 1000 else f"{number:.0f}"


def fill(template: str, row: Mapping[str, Any]) -> str:
    """Put a row's values into a sentence with `{column}` places. Raises KeyError for a column the row lacks."""
    filled = _FIELD.sub(lambda match: value_text(match.group(1), row[match.group(1)]), template)
    return _ONE.sub(_singular, filled)


def _singular(match: re.Match[str]) -> str:
    """'1 batches' to '1 batch', '1 copies' to '1 copy', '1 graph breaks' to '1 graph break'; verbs and units stay."""
    between, stem, ending = match.groups()
    if stem + ending in _NO_PLURAL:
        return match.group(0)
    if ending == "ies":
        return f"1 {between}{stem}y"
    return f"1 {between}{stem}{ending[:-2] if len(ending) > 1 else ''}"
