"""`schema`: every table and view of a run, and every column with type, unit and meaning."""

from __future__ import annotations

import re
from typing import Annotated, Any

import typer

from explorer.cli.options import JsonOption
from explorer.model.errors import UsageError

SCHEMA = "neuron-explorer/schema/1"


def command(
    name: Annotated[
        str | None, typer.Argument(metavar="[TABLE]", help="A table or view", show_default=False)
    ] = None,
    json: JsonOption = False,
    document: Annotated[
        bool, typer.Option("--document", help="The JSON Schema of a document such as findings or lines")
    ] = False,
) -> None:
    """Every table and view of a run, and every column with its type, unit and meaning.

    Without a name: all of them, one line each. With a name: its columns. `query` answers SQL over the same names.
    """
    from explorer.cli.output import print_json

    found = described()
    if document or (json and name in _only_documents(found)):
        from explorer.agent.json_schema import DOCUMENTS, json_schema

        if name is None:
            raise UsageError("Say which document.", f"Documents: {', '.join(DOCUMENTS)}.")
        print_schema(json_schema(name))
        return
    if name is not None and name not in found:
        from difflib import get_close_matches

        close = get_close_matches(name.lower(), found, n=1)
        raise UsageError(
            f"There is no table or view {name or '(empty)'}.",
            f"Did you mean {close[0]}?" if close else "neuron-explorer schema lists them.",
        )
    shown = {name: found[name]} if name else found
    if json:
        from explorer.model.schema import SCHEMA_VERSION

        print_json({"schema": SCHEMA, "run_schema_version": SCHEMA_VERSION, "tables": list(shown.values())})
    elif name:
        _print_one(shown[name])
    else:
        _print_all(shown)


def _only_documents(found: dict[str, dict[str, Any]]) -> set[str]:
    """Documents whose name is no table or view."""
    from explorer.agent.json_schema import DOCUMENTS

    return set(DOCUMENTS) - set(found)


def print_schema(document: dict[str, Any]) -> None:
    """Print a JSON Schema, whose first key is the dialect."""
    import json

    print(json.dumps(document, indent=1))


def described() -> dict[str, dict[str, Any]]:
    """Every table and view by name: kind, doc, columns (name, type, unit, nullable, doc)."""
    from explorer.analysis.computed import COMPUTED
    from explorer.analysis.view import all_views
    from explorer.model.tables import TABLES

    found: dict[str, dict[str, Any]] = {}
    for table in (*TABLES.values(), *(spec for spec, _ in COMPUTED.values())):
        columns = [
            {"name": c.name, "type": c.type, "unit": c.unit, "nullable": c.nullable, "doc": c.doc}
            for c in table.columns
        ]
        found[table.name] = {"name": table.name, "kind": "table", "doc": table.doc, "columns": columns}
    for view in sorted(all_views().values(), key=lambda view: view.name):
        columns = [
            {"name": c.name, "type": c.type, "unit": "" if c.unit == "-" else c.unit, "doc": c.doc}
            for c in view.columns
        ]
        found[view.name] = {"name": view.name, "kind": "view", "doc": view.doc, "columns": columns}
    return found


def _print_all(found: dict[str, dict[str, Any]]) -> None:
    from rich.text import Text

    from explorer.cli.table import console, print_hanging

    out = console()
    width = max(len(name) for name in found)
    for kind in ("table", "view"):
        out.print(Text(f"{kind.capitalize()}s", style="bold"))
        for name, entry in found.items():
            if entry["kind"] == kind:
                print_hanging(Text(f"  {name:<{width}}  ", style="cyan"), _gist(entry["doc"]), to=out)


def _gist(doc: str) -> str:
    """The first sentence, up to a colon or semicolon."""
    gist = re.split(r"[.;:] ", f"{doc} ", maxsplit=1)[0].rstrip(". ")
    return gist[0].upper() + gist[1:]


def _print_one(entry: dict[str, Any]) -> None:
    from rich.text import Text

    from explorer.cli.table import console, print_hanging

    out = console()
    print_hanging(Text(f"{entry['name']}  ", style="bold"), entry["doc"], to=out)
    names = max(len(c["name"]) for c in entry["columns"])
    types = max(len(_type(c)) for c in entry["columns"])
    for column in entry["columns"]:
        lead = Text.assemble(
            (f"  {column['name']:<{names}}  ", "cyan"), (f"{_type(column):<{types}}  ", "dim")
        )
        print_hanging(lead, column["doc"], to=out)


def _type(column: dict[str, Any]) -> str:
    optional = "?" if column.get("nullable") else ""
    return f"{column['type']}{optional} {column['unit']}".strip()
