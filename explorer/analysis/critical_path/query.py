"""The statements behind the critical path and replays, each a documented file in `sql/`."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from explorer.analysis.view import parse_view


@cache
def statement(name: str) -> str:
    """The SELECT of `sql/<name>.sql`. Raises FileNotFoundError for a name that is not there, ValueError for a file whose
    header does not say what it answers."""
    text = (files("explorer.analysis.critical_path") / "sql" / f"{name}.sql").read_text()
    return parse_view(name, text).sql
