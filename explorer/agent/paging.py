"""Pages of rows: a limit and a cursor, the cursor being the number of rows already seen."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from explorer.agent.document import Document
from explorer.model.errors import UsageError

MAX_LIMIT = 1000
_CURSOR = re.compile(r"[0-9]{1,15}")


def page(
    schema: str,
    fields: Mapping[str, Any],
    rows_key: str,
    rows: Sequence[Mapping[str, Any]],
    limit: int,
    cursor: str | None,
) -> Document:
    """One page of rows. Raises UsageError for a limit outside 1 to 1000 or a cursor that is no number."""
    offset = offset_of(limit, cursor)
    return Document(schema, fields, rows_key, tuple(rows[offset : offset + limit]), offset, len(rows))


def offset_of(limit: int, cursor: str | None) -> int:
    """Rows already seen. Raises UsageError for a limit outside 1 to 1000 or a cursor that is no number."""
    if not 1 <= limit <= MAX_LIMIT:
        raise UsageError(f"limit {limit} is not between 1 and {MAX_LIMIT}.")
    if cursor is not None and not _CURSOR.fullmatch(cursor):
        raise UsageError(f"'{cursor}' is not a cursor.", "Pass the next_cursor of the page before.")
    return int(cursor or 0)
