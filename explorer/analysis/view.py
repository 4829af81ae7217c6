"""The SQL views of the analysis layer, each one a documented file in `sql/`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

_COLUMN = re.compile(r"^--   (\w+)\s+(\w+(?:\[\])?)\s+(\S+)\s+(.+)$")
_NEEDS = re.compile(r"^-- Needs: (.+)$")


@dataclass(frozen=True, slots=True)
class ViewColumn:
    """A column of a view; `unit` is '-' where it has none."""

    name: str
    type: str
    unit: str
    doc: str


@dataclass(frozen=True, slots=True)
class View:
    """A view: what it answers, its columns, the tables and views it reads, its SELECT."""

    name: str
    doc: str
    columns: tuple[ViewColumn, ...]
    needs: tuple[str, ...]
    sql: str


def parse_view(name: str, text: str) -> View:
    """Read a view file.

    The header is a comment: `-- <name>: what it answers` (over several lines), `-- Needs: a, b`, `-- Columns`, then one
    line a column: name, type, unit or '-', meaning. Raises ValueError when a part is missing.
    """
    doc: list[str] = []
    columns: list[ViewColumn] = []
    needs: tuple[str, ...] = ()
    for line in text.splitlines():
        if not line.startswith("--"):
            break
        if match := _COLUMN.match(line):
            columns.append(ViewColumn(*match.groups()))
        elif match := _NEEDS.match(line):
            needs = tuple(part.strip() for part in match.group(1).split(","))
        elif columns and line.startswith("--     "):
            last = columns[-1]
            columns[-1] = ViewColumn(last.name, last.type, last.unit, f"{last.doc} {line[2:].strip()}")
        elif line.strip() not in ("--", "-- Columns"):
            doc.append(line[2:].strip())
    sentence = " ".join(doc)
    if not sentence.startswith(f"{name}: ") or not columns or not needs:
        raise ValueError(f"sql/{name}.sql: the header must hold '{name}: ...', '-- Needs:' and '-- Columns'")
    body = "\n".join(line for line in text.splitlines() if not line.startswith("--")).strip().rstrip(";")
    return View(name, sentence.removeprefix(f"{name}: "), tuple(columns), needs, body)


@cache
def all_views() -> dict[str, View]:
    """Every view by name, in an order in which each comes after the views it needs."""
    folder = files("explorer.analysis") / "sql"
    found = {
        entry.name.removesuffix(".sql"): parse_view(entry.name.removesuffix(".sql"), entry.read_text())
        for entry in sorted(folder.iterdir(), key=lambda entry: entry.name)
        if entry.name.endswith(".sql")
    }
    ordered: dict[str, View] = {}

    def place(name: str, trail: tuple[str, ...] = ()) -> None:
        if name in trail:
            raise ValueError(f"views need each other in a circle: {' -> '.join((*trail, name))}")
        if name in found and name not in ordered:
            for needed in found[name].needs:
                place(needed, (*trail, name))
            ordered[name] = found[name]

    for name in found:
        place(name)
    return ordered
