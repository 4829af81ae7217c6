"""Text from outside made safe for a terminal: no markup, no escape sequences, no direction changes, known widths.

Names in a trace are data: a kernel may be called `[bold]`, hold an escape sequence, or be 4,000 characters long.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from rich.cells import cell_len, set_cell_size
from rich.text import Text

# Characters that move the cursor, reorder what follows, or take no room: shown as a mark instead of acted on.
_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff]"
)
# Angle brackets right behind an identifier hold template arguments; elsewhere (<frozen runpy>, <lambda>) they do not.
_TEMPLATE = re.compile(r"(?<=[\w>\x01])<[^<>]*>")
ELLIPSIS = "…"


def _mark(match: re.Match[str]) -> str:
    code = ord(match.group())
    if code < 0x20:
        return chr(0x2400 + code)
    return "␡" if code == 0x7F else "·"


@lru_cache(maxsize=16_384)
def safe(text: str) -> str:
    """One line that a terminal shows and never obeys.

    Tabs and line ends become spaces; control, direction and zero-width characters become a visible mark; combining
    marks are composed where a composed form exists.
    """
    plain = text.replace("\r\n", " ").replace("\n", " ").replace("\t", " ")
    plain = _UNSAFE.sub(_mark, plain)
    return plain if plain.isascii() else unicodedata.normalize("NFC", plain)


def safe_code(line: str) -> str:
    """A line of source: as `safe`, with tabs as four spaces and its indentation kept."""
    return safe(line.rstrip("\r\n").expandtabs(4))


def fit(text: str, width: int, align: str = "left") -> str:
    """Safe text of exactly `width` cells: cut with an ellipsis, or padded on the other side of `align`."""
    if width <= 0:
        return ""
    plain = safe(text)
    length = cell_len(plain)
    if length > width:
        return set_cell_size(plain, width - 1) + ELLIPSIS
    padding = " " * (width - length)
    return padding + plain if align == "right" else plain + padding


def fit_path(path: str, width: int) -> str:
    """A path of at most `width` cells that keeps its end, where the file name is."""
    plain = safe(path)
    if cell_len(plain) <= width or width < 2:
        return plain if width >= 2 else plain[:width]
    tail = plain
    while cell_len(tail) > width - 1:
        tail = tail[1:]
    return ELLIPSIS + tail


@lru_cache(maxsize=16_384)
def brief(name: str) -> str:
    """A C++ kernel name without return type, template arguments and parameter list; other names unchanged.

    `void at::native::elementwise_kernel<4, Op<float>>(int)` becomes `at::native::elementwise_kernel<…>`.
    """
    plain = safe(name)
    if not plain.startswith("void ") and ("<" not in plain or "::" not in plain):
        return plain
    plain = plain.removeprefix("void ").removeprefix("static ")
    if plain.count("<") == plain.count(">") and plain.count("<") < 400:
        before = None
        while before != plain:
            before, plain = plain, _TEMPLATE.sub("\x01", plain)
        plain = plain.replace("\x01", "<…>")
    if plain.endswith(")") and plain.find("(") > 0 and plain.find("(") > plain.rfind("anonymous namespace"):
        plain = plain[: plain.rfind("(")]
    return plain


def plain_text(text: str, style: str = "") -> Text:
    """Safe text as a rich Text, in which markup is never read."""
    return Text(safe(text), style=style, no_wrap=False, end="")
