"""What `sql` can name: tables, computed tables and views with their documentation."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any

from explorer.agent.document import Document
from explorer.agent.paging import page
from explorer.analysis.computed import COMPUTED
from explorer.analysis.relations import SQL_TYPES
from explorer.analysis.view import all_views
from explorer.model.errors import UsageError
from explorer.model.schema import Table
from explorer.model.tables import TABLES

if TYPE_CHECKING:
    from explorer.analysis.run import Run

SCHEMA = "neuron-explorer/schema/1"


def relation_docs(run: Run, name: str | None, limit: int, cursor: str | None) -> Document:
    """All relations with a sentence each and how many rows the tables hold here, or one with its columns.

    Raises UsageError for an unknown name, saying which one was likely meant.
    """
    tables = {**TABLES, **{key: spec for key, (spec, _) in COMPUTED.items()}}
    views = all_views()
    if name is None:
        rows: list[dict[str, Any]] = [
            {
                "name": key,
                "kind": "table",
                "rows": sum(part.rows for part in run.reader.parts(key)) if key in TABLES else None,
                "doc": spec.doc,
            }
            for key, spec in tables.items()
        ]
        rows += [{"name": key, "kind": "view", "doc": view.doc} for key, view in views.items()]
        rows += [{"name": key, "kind": "extra table"} for key in run.reader.extra_tables]
        return page(SCHEMA, {"run": run.directory}, "relations", rows, limit, cursor)
    if name in tables:
        columns = _columns(tables[name])
        doc = tables[name].doc
    elif name in views:
        columns = [
            {"name": c.name, "type": c.type, "unit": None if c.unit == "-" else c.unit, "doc": c.doc}
            for c in views[name].columns
        ]
        doc = views[name].doc
    else:
        close = difflib.get_close_matches(name, [*tables, *views], 1)
        raise UsageError(
            f"There is no table or view '{name}'.",
            f"Did you mean '{close[0]}'?" if close else "Leave the name out for the list.",
        )
    return page(SCHEMA, {"name": name, "doc": doc}, "columns", columns, limit, cursor)


def _columns(spec: Table) -> list[dict[str, Any]]:
    return [
        {
            "name": c.name,
            "type": SQL_TYPES[c.type],
            "unit": c.unit or None,
            "doc": c.doc,
            "nullable": c.nullable or None,
        }
        for c in spec.columns
    ]
