"""Numbers as words: how an evidence statement shows the values of the row its SQL returns."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_FIELD = re.compile(r"\{(\w+)\}")


def duration_text(duration_ns: float) -> str:
    """Nanoseconds as people read them, three significant digits: 850 ns, 12.4 µs, 3.05 ms, 1.2 s."""
    size = abs(duration_ns)
    for unit, scale in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        # 999.6 µs would print as 1000 µs: go one unit up where rounding reaches it.
        if size >= scale * 0.9995:
            return f"{_three_digits(duration_ns / scale)} {unit}"
    return f"{duration_ns:.0f} ns"


def size_text(size_bytes: float) -> str:
    """Bytes as people read them, three significant digits, powers of 1000: 512 B, 1.05 MB."""
    for unit, scale in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if abs(size_bytes) >= scale * 0.9995:
            return f"{_three_digits(size_bytes / scale)} {unit}"
    return f"{size_bytes:.0f} B"


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
    return _three_digits(number) if abs(number) < 1000 else f"{number:.0f}"


def fill(template: str, row: Mapping[str, Any]) -> str:
    """Put a row's values into a sentence with `{column}` places. Raises KeyError for a column the row lacks."""
    return _FIELD.sub(lambda match: value_text(match.group(1), row[match.group(1)]), template)


def _three_digits(number: float) -> str:
    size = abs(number)
    decimals = 2 if size < 9.995 else 1 if size < 99.95 else 0
    text = f"{number:.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
