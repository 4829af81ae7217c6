"""Themes and the colours of categories: dark, light, and two that keep apart for every kind of colour vision."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps

from textual.theme import Theme

DEFAULT_THEME = "neuron-dark"


@dataclass(frozen=True)
class Palette:
    """Colours of what is drawn as blocks: one per category and a series for lines, modules and plots."""

    categories: dict[str, str]
    series: tuple[str, ...]
    idle: str
    ink: str
    """Text on top of a coloured block"""
    flat: bool = False
    """No shades or tones between the colours: the terminal could not show them"""


_DARK = Palette(
    {
        "op": "#5ea1f7",
        "python": "#7f8ea3",
        "annotation": "#4a5a78",
        "step": "#39465e",
        "data": "#e5a84b",
        "compile": "#c678dd",
        "runtime": "#56b6c2",
        "sync": "#e5c07b",
        "kernel": "#63c28a",
        "copy": "#d98a4e",
        "fill": "#a3b86c",
        "collective": "#b58cf0",
        "instruction": "#63c28a",
        "dma": "#d98a4e",
        "semaphore": "#e5c07b",
        "gc": "#e06c75",
        "io": "#ee9ca7",
        "overhead": "#6b7280",
        "other": "#8b93a1",
    },
    (
        "#5ea1f7",
        "#63c28a",
        "#e5a84b",
        "#b58cf0",
        "#56b6c2",
        "#e06c75",
        "#a3b86c",
        "#d98a4e",
        "#c678dd",
        "#7fd1d8",
    ),
    "#2a3344",
    "#0d1117",
)
_LIGHT = Palette(
    {
        "op": "#3b7ddd",
        "python": "#8592a6",
        "annotation": "#b4c1d6",
        "step": "#cfd8e6",
        "data": "#d68a00",
        "compile": "#a347ba",
        "runtime": "#1f95a3",
        "sync": "#b99100",
        "kernel": "#2f9e5f",
        "copy": "#c76a25",
        "fill": "#7d9a2f",
        "collective": "#8253d1",
        "instruction": "#2f9e5f",
        "dma": "#c76a25",
        "semaphore": "#b99100",
        "gc": "#cc3b48",
        "io": "#dd6f80",
        "overhead": "#9aa1ab",
        "other": "#8b93a1",
    },
    (
        "#3b7ddd",
        "#2f9e5f",
        "#d68a00",
        "#8253d1",
        "#1f95a3",
        "#cc3b48",
        "#7d9a2f",
        "#c76a25",
        "#a347ba",
        "#147a86",
    ),
    "#dfe5ee",
    "#ffffff",
)
# The colours of Okabe and Ito (Color Universal Design, 2008), which stay apart in every common colour vision.
_SAFE = Palette(
    {
        "op": "#56b4e9",
        "python": "#8c8c8c",
        "annotation": "#4d5663",
        "step": "#3a424d",
        "data": "#e69f00",
        "compile": "#cc79a7",
        "runtime": "#0072b2",
        "sync": "#f0e442",
        "kernel": "#009e73",
        "copy": "#d55e00",
        "fill": "#b3b3b3",
        "collective": "#cc79a7",
        "instruction": "#009e73",
        "dma": "#d55e00",
        "semaphore": "#f0e442",
        "gc": "#f5a3a3",
        "io": "#ffd9a0",
        "overhead": "#666666",
        "other": "#999999",
    },
    ("#56b4e9", "#009e73", "#e69f00", "#cc79a7", "#f0e442", "#d55e00", "#0072b2", "#b3b3b3"),
    "#2b323c",
    "#000000",
)

# The sixteen colours every terminal has, as their nearest-colour mapping expects them.
_SIXTEEN = Palette(
    {
        "op": "#5555ff",
        "python": "#aaaaaa",
        "annotation": "#555555",
        "step": "#555555",
        "data": "#ffff55",
        "compile": "#ff55ff",
        "runtime": "#00aaaa",
        "sync": "#aa5500",
        "kernel": "#00aa00",
        "copy": "#ff5555",
        "fill": "#55ff55",
        "collective": "#aa00aa",
        "instruction": "#00aa00",
        "dma": "#ff5555",
        "semaphore": "#aa5500",
        "gc": "#aa0000",
        "io": "#55ffff",
        "overhead": "#555555",
        "other": "#aaaaaa",
    },
    (
        "#5555ff",
        "#00aa00",
        "#ffff55",
        "#aa00aa",
        "#00aaaa",
        "#ff5555",
        "#55ff55",
        "#aa5500",
        "#ff55ff",
        "#55ffff",
    ),
    "#555555",
    "#000000",
    flat=True,
)

SIXTEEN_COLORS = "neuron-16"
"""The theme for terminals of sixteen colours; chosen by itself there."""

THEMES = (
    Theme(
        "neuron-dark",
        primary="#5ea1f7",
        secondary="#56b6c2",
        accent="#e5a84b",
        warning="#e5c07b",
        error="#f0717b",
        success="#63c28a",
        foreground="#d7dde8",
        background="#10151d",
        surface="#161d28",
        panel="#1e2735",
        variables={"footer-key-foreground": "#e5a84b", "block-cursor-text-style": "none"},
    ),
    Theme(
        "neuron-light",
        primary="#2566c8",
        secondary="#177f8b",
        accent="#a85f00",
        warning="#8a6a00",
        error="#b62a38",
        success="#1f7d48",
        foreground="#1d2735",
        background="#fafbfd",
        surface="#f0f3f8",
        panel="#e3e9f2",
        dark=False,
        variables={"footer-key-foreground": "#a85f00", "block-cursor-text-style": "none"},
    ),
    Theme(
        "neuron-colorblind",
        primary="#56b4e9",
        secondary="#009e73",
        accent="#e69f00",
        warning="#f0e442",
        error="#ff8c42",
        success="#56b4e9",
        foreground="#e8e8e8",
        background="#101418",
        surface="#171c22",
        panel="#20272f",
        variables={"footer-key-foreground": "#e69f00", "block-cursor-text-style": "none"},
    ),
    Theme(
        "neuron-colorblind-light",
        primary="#0072b2",
        secondary="#00745a",
        accent="#9a5b00",
        warning="#7a6500",
        error="#b54a00",
        success="#0072b2",
        foreground="#16202b",
        background="#fbfbfb",
        surface="#f1f3f5",
        panel="#e4e8ec",
        dark=False,
        variables={"footer-key-foreground": "#9a5b00", "block-cursor-text-style": "none"},
    ),
    Theme(
        SIXTEEN_COLORS,
        primary="#5555ff",
        secondary="#00aaaa",
        accent="#ffff55",
        warning="#ffff55",
        error="#ff5555",
        success="#55ff55",
        foreground="#ffffff",
        background="#000000",
        surface="#000000",
        panel="#000000",
        variables={"footer-key-foreground": "#ffff55", "block-cursor-text-style": "none"},
    ),
)

_PALETTES = {
    SIXTEEN_COLORS: _SIXTEEN,
    "neuron-dark": _DARK,
    "neuron-light": _LIGHT,
    "neuron-colorblind": _SAFE,
    "neuron-colorblind-light": Palette(_SAFE.categories, _SAFE.series, "#dfe3e8", "#000000"),
}


def palette_of(theme: Theme) -> Palette:
    """The palette of a theme; foreign themes get the dark or the light one."""
    return _PALETTES.get(theme.name, _DARK if theme.dark else _LIGHT)


def _once_per_theme(find: Callable[[Theme], dict[str, str]]) -> Callable[[Theme], dict[str, str]]:
    """Keep what `find` says, by the theme's name; a theme that takes the name of another is asked about anew."""
    kept: dict[str, tuple[Theme, dict[str, str]]] = {}

    @wraps(find)
    def known(theme: Theme) -> dict[str, str]:
        entry = kept.get(theme.name)
        if entry is None or entry[0] is not theme:
            entry = kept[theme.name] = theme, find(theme)
        return entry[1]

    return known


@_once_per_theme
def inks(theme: Theme) -> dict[str, str]:
    """Text colours of a theme as plain hex, for text that is drawn by hand: no transparency, no 'auto'."""
    # Kept: a picture asks for them a dozen times, and mixing them takes half a millisecond.
    from textual.color import Color

    system = theme.to_color_system().generate()
    background = Color.parse(theme.background or system["background"])
    foreground = Color.parse(theme.foreground or system["foreground"])

    def hexed(name: str) -> str:
        given = getattr(theme, name, None) or system.get(name) or system["foreground"]
        try:
            return str(Color.parse(given).hex6)
        except Exception:
            return str(foreground.hex6)

    if theme.name == SIXTEEN_COLORS:
        muted = {"muted": "#aaaaaa", "faint": "#555555", "cursor": "#0000aa", "resting": "#555555"}
    else:
        muted = {
            "muted": foreground.blend(background, 0.38).hex6,
            "faint": foreground.blend(background, 0.62).hex6,
            "cursor": background.blend(Color.parse(theme.primary), 0.32).hex6,
            "resting": background.blend(foreground, 0.10).hex6,
        }
    return {
        **muted,
        "foreground": foreground.hex6,
        "background": background.hex6,
        "primary": hexed("primary"),
        "secondary": hexed("secondary"),
        "accent": hexed("accent"),
        "good": hexed("success"),
        "warn": hexed("warning"),
        "bad": hexed("error"),
    }


@_once_per_theme
def css_variables(theme: Theme) -> dict[str, str]:
    """The variables of the style sheets in a theme, the library's and our own."""
    own = inks(theme)
    variables = {f"ink-{name}": own[name] for name in ("muted", "faint", "cursor", "resting")}
    return variables | theme.to_color_system().generate() | theme.variables
