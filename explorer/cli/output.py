"""What a verb prints: one JSON document, or text and tables on standard output; notes go to standard error."""

from __future__ import annotations

import errno
import json
import math
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from explorer.cli.units import ACTING, harmless
from explorer.model.errors import UsageError

if TYPE_CHECKING:
    from explorer.analysis.result import Result


_ESCAPED = {code: f"\\u{code:04x}" for code in ACTING if code >= 0x20}


def print_json(document: Mapping[str, Any]) -> None:
    """Print one document, `schema` first. Values JSON cannot hold (NaN, infinity) become null, others their text."""
    ordered = {"schema": document["schema"], **document}
    plain = (sys.stdout.encoding or "").lower().replace("-", "") != "utf8"
    text = json.dumps(finite(ordered), ensure_ascii=plain, indent=1, default=str)
    # A lone surrogate (an undecodable file name) has no UTF-8 form; its JSON escape has.
    text = text.encode("utf-8", "backslashreplace").decode("utf-8")
    # What acts on a terminal stays data, but as JSON's escape.
    sys.stdout.write(text.translate(_ESCAPED) + "\n")


def finite(value: Any) -> Any:
    """The value with every non-finite number, at any depth, replaced by None."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    return value


def rows_document(
    result: Result, run: str, rows: Sequence[Mapping[str, Any]], total: int, **extra: Any
) -> dict[str, Any]:
    """The document of a table: schema, run, columns, rows, how many there are and whether they were cut."""
    return {
        "schema": result.schema,
        "run": run,
        **extra,
        "columns": result.columns,
        "rows": list(rows),
        "total_rows": total,
        "truncated": result.truncated or len(rows) < total,
    }


def cut(rows: Sequence[Mapping[str, Any]], limit: int) -> list[Mapping[str, Any]]:
    """The first `limit` rows; all for 0."""
    return list(rows[:limit] if limit else rows)


def write_text(path: str, text: str, *, mode: str = "w", remedy: str = "") -> None:
    """Write a file that the user named, whole or not at all, or append to it. Raises UsageError where it cannot be written."""
    try:
        if mode == "w":
            from explorer.report.whole_file import write_whole

            write_whole(path, text.encode("utf-8", "surrogateescape"))
            return
        with open(path, mode, encoding="utf-8", errors="surrogateescape") as file:
            file.write(text)
    except OSError as error:
        raise UsageError(f"Cannot write {path}: {error.strerror or error}.", remedy) from error


def refuse_unwritable(path: str, remedy: str) -> None:
    """Raise UsageError for a file that cannot be written, as far as that can be seen before the work is done."""
    if path.startswith("/dev/"):
        return
    folder = os.path.dirname(path) or "."
    if path.endswith("/") or os.path.isdir(path):
        why = errno.EISDIR
    elif not os.path.isdir(folder):
        why = errno.ENOTDIR if os.path.exists(folder) else errno.ENOENT
    elif not os.access(path if os.path.exists(path) else folder, os.W_OK):
        why = errno.EACCES
    else:
        return
    raise UsageError(f"Cannot write {path}: {os.strerror(why)}.", remedy)


def note(text: str) -> None:
    """One line on standard error."""
    print(harmless(text), file=sys.stderr)


def note_cut(shown: int, total: int) -> None:
    """Say that a table was cut."""
    if shown < total:
        note(f"{shown:,} of {total:,} rows; --limit 0 shows all.")


def chosen(
    rows: Iterable[Mapping[str, Any]], *, rank: int | None = None, step: int | None = None
) -> list[Mapping[str, Any]]:
    """Rows of one rank and step, where asked for. Rows without such a column stay."""
    return [
        row
        for row in rows
        if (rank is None or row.get("rank", rank) == rank) and (step is None or row.get("step", step) == step)
    ]
