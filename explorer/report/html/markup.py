"""Making HTML: every text is escaped here, so that a kernel called <script> stays text."""

from __future__ import annotations

import html
import json
import re
from typing import Any

from explorer.report.code_in_text import pieces

_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


_VOID = ("br", "hr", "input")


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def text(value: object) -> Markup:
    """A value as text: escaped, without control and direction-changing characters."""
    if isinstance(value, Markup):
        return value
    return Markup(html.escape(_CONTROL.sub("�", str(value)), quote=True))


def tag(name: str, *children: object, **attributes: object) -> Markup:
    """An element. `class_` is class; other underscores are hyphens; None and False attributes are left out."""
    shown = "".join(
        f" {key.rstrip('_').replace('_', '-')}" + ("" if value is True else f'="{text(value)}"')
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    if name in _VOID:
        return Markup(f"<{name}{shown}>")
    return Markup(f"<{name}{shown}>{''.join(text(child) for child in children)}</{name}>")


def join(*children: object) -> Markup:
    """Elements one after another."""
    return Markup("".join(text(child) for child in children))


def with_code(sentence: str) -> Markup:
    """A sentence whose code is marked as such."""
    return join(*(tag("code", piece) if is_code else piece for piece, is_code in pieces(sentence)))


def json_script(identity: str, data: Any) -> Markup:
    """Data for the page's script. No `</script>` or comment can end it early."""
    body = json.dumps(data, ensure_ascii=True, separators=(",", ":"), default=str)
    body = body.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    return Markup(f'<script type="application/json" id="{text(identity)}">{body}</script>')


def section(identity: str, title: str, *children: object, note: str = "") -> Markup:
    """A part of the page with a heading and, where given, a sentence on how to read it."""
    return tag(
        "section",
        tag("h2", title),
        tag("p", note, class_="note") if note else "",
        *children,
        id=identity,
    )


def plot(identity: str, height_px: int, label: str) -> Markup:
    """The place of a plot; the script draws `figures[identity]` there."""
    return tag(
        "div",
        class_="plot",
        id=f"plot-{identity}",
        style=f"height:{height_px}px",
        role="img",
        aria_label=label,
    )
