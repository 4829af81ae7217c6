"""Numbers and names as people read them: durations, sizes, shares, text cut to a width."""

from __future__ import annotations

from typing import Any

ELLIPSIS = "…"


def duration(nanoseconds: float) -> str:
    """Three significant digits with a unit: 950 ns, 12.3 µs, 4.56 ms, 1.20 s, 2 min 05 s."""
    value = float(nanoseconds)
    if value == 0:
        return "0"
    sign, value = ("-", -value) if value < 0 else ("", value)
    if value < 999.5:
        return f"{sign}{value:.0f} ns"
    for divisor, unit in ((1e3, "µs"), (1e6, "ms"), (1e9, "s")):
        scaled = value / divisor
        if scaled < 999.5 and (unit != "s" or scaled < 119.5):
            return f"{sign}{_three(scaled)} {unit}"
    minutes, seconds = divmod(round(value / 1e9), 60)
    if minutes < 120:
        return f"{sign}{minutes} min {seconds:02d} s"
    hours, minutes = divmod(minutes, 60)
    return f"{sign}{hours} h {minutes:02d} min"


def _three(value: float) -> str:
    if value < 9.995:
        return f"{value:.2f}"
    return f"{value:.1f}" if value < 99.95 else f"{value:.0f}"


def share(part: float) -> str:
    """A share of 1 as per cent with one digit."""
    return f"{100 * float(part):.1f} %"


def size(count: float) -> str:
    """Bytes with a binary unit: 512 B, 1.50 KiB, 2.00 GiB."""
    value = float(count)
    sign, value = ("-", -value) if value < 0 else ("", value)
    if value < 1024:
        return f"{sign}{value:.0f} B"
    for unit in ("KiB", "MiB", "GiB", "TiB"):
        value /= 1024
        if value < 1023.5:
            return f"{sign}{_three(value)} {unit}"
    return f"{sign}{value / 1024:.1f} PiB"


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
