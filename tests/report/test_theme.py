"""The colours of the report's two themes: every text stands out from what lies behind it as WCAG 2 asks (4.5 to 1)."""

from __future__ import annotations

import re

import pytest

from explorer.report.html.page import asset

_COLOUR = re.compile(r"--([\w-]+): (#[0-9a-f]{6})")
_DARK = ':root[data-theme="dark"]'


def themes() -> dict[str, dict[str, str]]:
    css = asset("report.css")
    light = dict(_COLOUR.findall(css[: css.index("@media (prefers-color-scheme: dark)")]))
    dark = dict(_COLOUR.findall(css[css.index(_DARK) : css.index("* {")]))
    return {"light": light, "dark": light | dark}


def channels(colour: str) -> list[int]:
    return [int(colour[start : start + 2], 16) for start in (1, 3, 5)]


def luminance(colour: str) -> float:
    """Relative luminance of sRGB, as WCAG 2 defines it."""
    red, green, blue = (
        value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4
        for value in (channel / 255 for channel in channels(colour))
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def marked(theme: dict[str, str]) -> str:
    """The background of a highlighted line: 22 % medium over paper."""
    over, under = channels(theme["medium"]), channels(theme["paper"])
    return "#" + "".join(f"{round(0.22 * a + 0.78 * b):02x}" for a, b in zip(over, under, strict=True))


def test_the_scale_is_that_of_wcag() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize("name", ["light", "dark"])
def test_every_text_stands_out(name: str) -> None:
    theme = themes()[name]
    pairs = {
        **{
            f"{text} on {ground}": (theme[text], theme[ground])
            for text in ("ink", "muted", "high", "good")
            for ground in ("paper", "panel")
        },
        "link": (theme["accent"], theme["paper"]),
        **{f"badge {level}": (theme["paper"], theme[level]) for level in ("high", "medium", "low")},
        "highlighted line": (theme["ink"], marked(theme)),
        **{f"frame {depth}": (theme["flame-ink"], theme[f"flame-{depth}"]) for depth in range(4)},
    }
    weak = {what: round(contrast(*colours), 2) for what, colours in pairs.items() if contrast(*colours) < 4.5}
    assert weak == {}


def test_both_ways_to_the_dark_theme_give_the_same_colours() -> None:
    css = asset("report.css")
    asked = css[css.index("@media (prefers-color-scheme: dark)") : css.index(_DARK)]
    assert dict(_COLOUR.findall(asked)) == dict(_COLOUR.findall(css[css.index(_DARK) : css.index("* {")]))
