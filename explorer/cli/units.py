"""Numbers and names as people read them: durations, sizes, shares, text cut to a width."""

from __future__ import annotations

import re
from typing import Any

from explorer.model.quantity import duration_text, rate_text, size_text

ELLIPSIS = "…"

_DIRECTION = (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
ACTING = tuple(code for code in (*range(0x20), *range(0x7F, 0xA0), *_DIRECTION) if code not in (0x09, 0x0A))
"""Code points that act on a terminal instead of being shown."""
_HARMLESS = dict.fromkeys(ACTING, " ")


def duration(nanoseconds: float) -> str:
    """Three significant digits with a unit: 950 ns, 12.3 µs, 4.56 ms, 1.20 s, 2 min 05 s."""
    return duration_text(float(nanoseconds))


def share(part: float) -> str:
    """A share of 1 as per cent with one digit."""
    return f"{100 * float(part):.1f} %"


def size(count: float) -> str:
    """Bytes with a binary unit: 512 B, 1.50 KiB, 2.00 GiB."""
    return size_text(count)


def flop_rate(per_second: float) -> str:
    """Floating point operations per second with the prefix that fits: 7.20 GFLOP/s."""
    return rate_text(float(per_second), "FLOP/s")


def byte_rate(per_second: float) -> str:
    """Bytes per second with the decimal prefix that fits: 1.74 GB/s."""
    return rate_text(float(per_second), "B/s")


def number(value: Any) -> str:
    """Whole numbers with thousands separated; others with up to four significant digits."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if isinstance(value, int) or value.is_integer():
        return f"{int(value):,}"
    return f"{value:,.2f}" if abs(value) >= 100 else f"{value:.4g}"


def one_line(text: str, *, strip: bool = True) -> str:
    """Text without line breaks or control characters, so that a name from a trace cannot move the cursor."""
    plain = "".join(c if c.isprintable() else " " for c in text)
    return plain.strip() if strip else plain


def harmless(text: str) -> str:
    """Text whose control characters cannot act on a terminal: each becomes a space, line breaks and tabs stay.

    Escape, the C1 controls and the marks that turn the writing direction come from names and paths of whoever made a trace.
    """
    return text.translate(_HARMLESS)


def shortened(text: str, most: int = 300) -> str:
    """Text whose words are no longer than `most` characters: the middle of longer ones is left out."""
    if len(text) <= most:
        return text
    half = most // 2
    return re.sub(rf"\S{{{most + 1},}}", lambda word: f"{word[0][:half]}{ELLIPSIS}{word[0][-half:]}", text)


def width(text: str) -> int:
    """Terminal cells the text takes."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def start_of(text: str, cells: int) -> str:
    """The text's start with an ellipsis where it is longer than `cells`."""
    if width(text) <= cells:
        return text
    while text and width(text) > cells - 1:
        text = text[:-1]
    return text + ELLIPSIS


def end_of(text: str, cells: int) -> str:
    """The text's end, for paths, whose end says more."""
    if width(text) <= cells:
        return text
    while text and width(text) > cells - 1:
        text = text[1:]
    return ELLIPSIS + text
