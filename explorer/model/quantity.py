"""Durations, sizes and rates as people read them: three significant digits and a unit. The one place that formats them."""

from __future__ import annotations

_TIME = ((1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "µs"))
_RATE = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))
_SIZE = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def three_digits(value: float, *, trim: bool = False) -> str:
    """1.23, 12.3, 123, 1,234; `trim` leaves off zeros behind the point."""
    size = abs(value)
    if size >= 99.95:
        return f"{value:,.0f}"
    text = f"{value:.1f}" if size >= 9.995 else f"{value:.2f}"
    return text.rstrip("0").rstrip(".") if trim else text


def duration_text(duration_ns: float, *, trim: bool = False) -> str:
    """850 ns, 12.4 µs, 3.05 ms, 1.20 s, 2 min 05 s, 3 h 07 min; 0 is '0'."""
    if duration_ns == 0:
        return "0"
    sign, size = ("-", -duration_ns) if duration_ns < 0 else ("", duration_ns)
    if size >= 119.5e9:
        minutes, seconds = divmod(round(size / 1e9), 60)
        if minutes < 120:
            return f"{sign}{minutes} min {seconds:02d} s"
        hours, minutes = divmod(minutes, 60)
        return f"{sign}{hours:,} h {minutes:02d} min"
    for factor, unit in _TIME:
        # 999.6 µs would print as 1,000 µs: go one unit up where rounding reaches it.
        if size >= factor * 0.9995:
            return f"{sign}{three_digits(size / factor, trim=trim)} {unit}"
    return f"{sign}{size:.0f} ns"


def size_text(size_bytes: float, *, trim: bool = False) -> str:
    """512 B, 1.50 KiB, 2.00 GiB."""
    sign, value = ("-", -float(size_bytes)) if size_bytes < 0 else ("", float(size_bytes))
    for unit in _SIZE:
        if value < 1023.5 or unit == _SIZE[-1]:
            shown = f"{value:.0f}" if unit == "B" else three_digits(value, trim=trim)
            return f"{sign}{shown} {unit}"
        value /= 1024
    raise AssertionError("unreachable: the last unit takes any size")


def rate_text(per_second: float, unit: str) -> str:
    """A rate with the decimal prefix that fits it: 7.20 GFLOP/s, 3.35 TB/s; 0 is '0'."""
    for factor, prefix in _RATE:
        if per_second >= factor * 0.9995:
            return f"{three_digits(per_second / factor)} {prefix}{unit}"
    return f"{three_digits(per_second)} {unit}" if per_second else "0"
