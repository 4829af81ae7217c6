"""Numbers as people read them: three significant digits and a unit. Input in ns, bytes, shares of 1."""

from __future__ import annotations

import math

from explorer.model.quantity import duration_text, size_text, three_digits

NONE = "–"
_EIGHTHS = " ▏▎▍▌▋▊▉█"
_LEVELS = "▁▂▃▄▅▆▇"
"""Without the full block, which would touch the row above"""


def _missing(value: object) -> bool:
    return value is None or (isinstance(value, float) and not math.isfinite(value))


def duration(value_ns: float | None) -> str:
    """Nanoseconds as '1.23 ms'."""
    if _missing(value_ns) or value_ns is None:
        return NONE
    return duration_text(value_ns)


def share(value: float | None) -> str:
    """A share of 1 as '12.3 %'."""
    if _missing(value) or value is None:
        return NONE
    percent = value * 100
    if percent == 0:
        return "0 %"
    if 0 < percent < 0.05:
        return "<0.1 %"
    return f"{percent:.0f} %" if abs(percent) >= 99.95 else f"{percent:.1f} %"


def count(value: float | None) -> str:
    """A count: '1,234', or '12.3 M' from ten million."""
    if _missing(value) or value is None:
        return NONE
    if abs(value) >= 10_000_000:
        return f"{three_digits(value / 1e6)} M" if abs(value) < 1e10 else f"{three_digits(value / 1e9)} G"
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.2f}"


def size(value_bytes: float | None) -> str:
    """Bytes as '1.23 MiB'."""
    if _missing(value_bytes) or value_bytes is None:
        return NONE
    return size_text(value_bytes)


def work(value_flops: float | None) -> str:
    """Floating point operations as '1.23 GFLOP'."""
    if _missing(value_flops) or value_flops is None:
        return NONE
    value = float(value_flops)
    for unit in ("", "K", "M", "G", "T"):
        if abs(value) < 999.5 or unit == "T":
            return f"{three_digits(value)} {unit}FLOP"
        value /= 1000
    return NONE


def bar(part: float | None, width: int) -> str:
    """A bar of `width` cells in eighths, filled to `part` of 1, rounded to an eighth of a cell."""
    if _missing(part) or part is None or part <= 0:
        return " " * width
    eighths = min(width * 8, round(part * width * 8))
    full, rest = divmod(eighths, 8)
    return ("█" * full + (_EIGHTHS[rest] if rest else "")).ljust(width)


def sparkline(values: list[float | None], width: int) -> str:
    """Values as a row of block heights from 0 to their maximum, spread over the width; values that share a cell are
    averaged."""
    known = [value for value in values if not _missing(value)]
    if not known or width <= 0:
        return " " * width
    top = max(float(value or 0) for value in known) or 1.0
    cells: list[str] = []
    for cell in range(width):
        first = cell * len(values) // width
        last = max(first + 1, (cell + 1) * len(values) // width)
        group = [float(v) for v in values[first:last] if v is not None and not _missing(v)]
        if not group:
            cells.append(" ")
            continue
        level = round(sum(group) / len(group) / top * (len(_LEVELS) - 1))
        cells.append(_LEVELS[max(0, min(level, len(_LEVELS) - 1))])
    return "".join(cells)
