"""One way to print tables: fits the terminal's width by hiding what matters least, plain text when piped."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from explorer.cli import units

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

PIPED_WIDTH = 120
"""Width where there is no terminal and COLUMNS is not set."""

_GAP = 2
_NAMES = ("rank", "step")
_MIN_FLEX = 16


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a printed table.

    Args:
        key: name in the rows.
        title: heading.
        kind: text, path, number, duration, share, bytes, rate (two decimals), flop_rate, byte_rate or raw (a number as it is): decides format and alignment.
        priority: 0 always stays; the highest is hidden first where the table is too wide.
        flexible: gives up width, down to 16 characters, before columns are hidden.
        style: rich style on a terminal.
    """

    key: str
    title: str
    kind: str = "text"
    priority: int = 0
    flexible: bool = False
    style: str = ""


_FORMATS: dict[str, Callable[[Any], str]] = {
    "text": lambda value: units.one_line(str(value)),
    "path": lambda value: units.one_line(str(value)),
    "number": units.number,
    "duration": units.duration,
    "share": units.share,
    "bytes": units.size,
    "raw": str,
    "rate": lambda value: f"{float(value):.2f}",
    "flop_rate": units.flop_rate,
    "byte_rate": units.byte_rate,
}
_LEFT = ("text", "path")


def console(stderr: bool = False) -> Console:
    """A console that writes no colour when piped and honours NO_COLOR, FORCE_COLOR and COLUMNS."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    width = None
    if not stream.isatty():
        columns = os.environ.get("COLUMNS", "")
        width = int(columns) if columns.isdigit() and int(columns) > 0 else PIPED_WIDTH

    class SafeConsole(Console):
        """Names in traces may hold escape sequences: only our own colours reach the terminal."""

        def print(self, *objects: Any, **how: Any) -> None:
            super().print(*(_harmless(item) for item in objects), **how)

    return SafeConsole(file=stream, width=width, highlight=False, soft_wrap=False, emoji=False, markup=False)


def _harmless(item: Any) -> Any:
    from rich.text import Text

    if isinstance(item, str):
        return units.harmless(item)
    if isinstance(item, Text) and not item.plain.isprintable():
        safe = item.copy()
        safe.plain = units.harmless(item.plain)
        return safe
    return item


def print_table(
    rows: Iterable[Mapping[str, Any]],
    columns: Sequence[Column],
    *,
    to: Console | None = None,
    keep_empty: bool = False,
) -> None:
    """Print rows under headings. Columns that hold nothing, or only zeros, and that may be hidden are left out (not with
    `keep_empty`); long text ends in an ellipsis, paths start with one."""
    from rich.text import Text

    to = to or console()
    rows = list(rows)
    cells = [[_cell(row.get(column.key), column) for column in columns] for row in rows]
    shown = [
        i
        for i, c in enumerate(columns)
        if keep_empty or c.priority == 0 or any(_holds(row.get(c.key), c) for row in rows)
    ]
    widths = fitted(
        {i: max([units.width(columns[i].title), *(units.width(row[i]) for row in cells)]) for i in shown},
        columns,
        to.width,
    )
    to.print(Text(_line([_pad(columns[i].title, columns[i], w) for i, w in widths.items()]), style="bold"))
    for row in cells:
        line = Text()
        for position, (i, width) in enumerate(widths.items()):
            if position:
                line.append(" " * _GAP)
            line.append(_pad(row[i], columns[i], width), style=columns[i].style)
        line.rstrip()
        to.print(line, no_wrap=True, overflow="crop")


def _holds(value: Any, column: Column) -> bool:
    """Whether a value says anything: a number of 0 does not, but rank 0 and step 0 are names."""
    return value is not None if column.key in _NAMES else bool(value)


def fitted(widths: Mapping[int, int], columns: Sequence[Column], available: int) -> dict[int, int]:
    """Widths that fit `available`: flexible columns shrink first (the widest most), then low priorities are hidden."""
    result = dict(widths)

    def excess() -> int:
        return sum(result.values()) + _GAP * (len(result) - 1) - available

    while excess() > 0:
        flexible = [i for i in result if columns[i].flexible and result[i] > _MIN_FLEX]
        slack = sum(result[i] - _MIN_FLEX for i in flexible)
        hideable = [i for i in result if columns[i].priority > 0]
        # A flexible column squeezed to a stub says less than a hidden column of low priority would cost.
        if slack >= excess() and (not hideable or slack >= 2 * excess()):
            _shrink(result, flexible, excess())
            break
        if not hideable:
            _shrink(result, flexible, min(slack, excess()))
            break
        del result[max(hideable, key=lambda i: columns[i].priority)]
    return result


def _shrink(widths: dict[int, int], flexible: Sequence[int], by: int) -> None:
    for _ in range(by):
        widest = max(flexible, key=lambda i: widths[i])
        widths[widest] -= 1


def _cell(value: Any, column: Column) -> str:
    return "" if value is None else _FORMATS[column.kind](value)


def _pad(text: str, column: Column, width: int) -> str:
    if units.width(text) > width:
        text = units.end_of(text, width) if column.kind == "path" else units.start_of(text, width)
    space = " " * (width - units.width(text))
    return text + space if column.kind in _LEFT else space + text


def _line(parts: Sequence[str]) -> str:
    return (" " * _GAP).join(parts).rstrip()


def say(text: str) -> None:
    """Print a sentence, wrapped to the width."""
    print_hanging("", text)


def print_hanging(lead: Text | str, body: Text | str, *, to: Console | None = None) -> None:
    """Print a body behind its lead; further lines of the body start below the first one's start."""
    from rich.text import Text

    to = to or console()
    lead = Text(lead) if isinstance(lead, str) else lead
    shown: Text = _harmless(Text(units.shortened(body)) if isinstance(body, str) else _shortened(body))
    indent = lead.cell_len
    for number, line in enumerate(shown.wrap(to, max(20, to.width - indent))):
        line.rstrip()
        to.print(Text.assemble(lead if number == 0 else " " * indent, line), no_wrap=True, overflow="ignore")


def _shortened(body: Text) -> Text:
    """The same with the middle of endless words left out, styles kept."""
    if len(body) <= 300 or units.shortened(body.plain) == body.plain:
        return body
    from rich.text import Text

    short = Text()
    for piece in body.divide(sorted({edge for span in body.spans for edge in (span.start, span.end)})):
        style = piece.spans[0].style if piece.spans else ""
        short.append(units.shortened(piece.plain), style=style)
    return short
