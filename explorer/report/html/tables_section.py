"""Tables that sort and filter: source lines, ops, kernels, modules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from explorer.model.quantity import duration_text, size_text
from explorer.report.html.markup import Markup, section, tag

MOST_ROWS = 200
LONGEST_NAME = 400
LONGEST_PLACE = 44


@dataclass(frozen=True, slots=True)
class Field:
    """A column: key in the rows, heading, and kind: text, place, code, duration, share, number or bytes."""

    key: str
    title: str
    kind: str = "text"

    @property
    def is_text(self) -> bool:
        return self.kind in _TEXT_CLASSES

    @property
    def css_class(self) -> str:
        return _TEXT_CLASSES.get(self.kind, "number")


_TEXT_CLASSES = {"text": "text", "place": "text unbroken", "code": "text long"}


LINES = (
    Field("place", "line", "place"),
    Field("code", "code", "code"),
    Field("cost_ns", "host", "duration"),
    Field("device_ns", "device", "duration"),
    Field("share", "share", "share"),
    Field("calls", "calls", "number"),
    Field("ops", "ops", "number"),
)
OPS = (
    Field("name", "op", "code"),
    Field("calls", "calls", "number"),
    Field("self_ns", "host self", "duration"),
    Field("total_ns", "host total", "duration"),
    Field("p50_ns", "median", "duration"),
    Field("max_ns", "longest", "duration"),
    Field("device_ns", "device", "duration"),
    Field("share", "share", "share"),
)
KERNELS = (
    Field("name", "kernel", "code"),
    Field("category", "kind"),
    Field("device", "device"),
    Field("calls", "calls", "number"),
    Field("total_ns", "total", "duration"),
    Field("p50_ns", "median", "duration"),
    Field("max_ns", "longest", "duration"),
    Field("share", "share", "share"),
)
MODULES = (
    Field("path", "module", "code"),
    Field("class_name", "class"),
    Field("self_ns", "host self", "duration"),
    Field("total_ns", "host total", "duration"),
    Field("device_ns", "device", "duration"),
    Field("share", "share", "share"),
)


def table_section(
    identity: str, title: str, rows: Sequence[Mapping[str, Any]], fields: Sequence[Field], empty: str
) -> Markup:
    """One table; at most 200 rows, and how many there are. Columns in which no row has more than zero are left out."""
    if not rows:
        return section(identity, title, tag("p", empty, class_="empty"))
    shown = rows[:MOST_ROWS]
    fields = [field for field in fields if field.is_text or any(row.get(field.key) for row in rows)]
    head = tag(
        "tr",
        *(
            tag(
                "th",
                tag("button", field.title, type="button"),
                scope="col",
                class_=field.css_class,
                aria_sort="none",
            )
            for field in fields
        ),
    )
    body = [tag("tr", *(_cell(row.get(field.key), field) for field in fields)) for row in shown]
    more = (
        f"{len(shown)} of {len(rows)} rows; click a heading to sort."
        if len(shown) < len(rows)
        else "Click a heading to sort."
    )
    return section(
        identity,
        title,
        tag(
            "input",
            type="search",
            placeholder=f"Filter {title.lower()}",
            class_="filter",
            aria_label=f"Filter {title}",
        ),
        tag("div", tag("table", tag("thead", head), tag("tbody", *body), class_="sortable"), class_="scroll"),
        tag("p", more, class_="note"),
    )


def _cell(value: Any, field: Field) -> Markup:
    if value is None:
        return tag("td", "", class_="number", data_value="-1")
    if field.kind == "code":
        full = str(value)
        cut = full if len(full) <= LONGEST_NAME else full[:LONGEST_NAME] + "…"
        return tag("td", tag("code", cut), class_=field.css_class)
    if field.kind == "place":
        full = str(value)
        short = full if len(full) <= LONGEST_PLACE else "…" + full[1 - LONGEST_PLACE :]
        return tag("td", short, class_=field.css_class, title=full if short != full else None)
    if field.kind == "text":
        return tag("td", value, class_=field.css_class)
    shown = {
        "duration": duration_text,
        "bytes": size_text,
        "share": lambda number: f"{number:.1%}",
        "number": lambda number: f"{number:,}",
    }[field.kind](value)
    bar = (
        tag("span", class_="sharebar", style=f"--share:{min(1.0, max(0.0, value)):.4f}")
        if field.kind == "share"
        else ""
    )
    return tag("td", bar, shown, class_="number", data_value=value)
