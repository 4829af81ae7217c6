"""What every reading verb of a table does: cut the rows, print a table or one JSON document, say what was left out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from explorer.cli.output import chosen, cut, note_cut, print_json, rows_document
from explorer.cli.source_run import open_source
from explorer.cli.table import Column, print_table

if TYPE_CHECKING:
    from explorer.analysis.result import Result
    from explorer.analysis.run import Run


def read(
    path: str,
    answer: Callable[[Run], Result],
    columns: Sequence[Column],
    *,
    json: bool,
    limit: int = 0,
    rank: int | None = None,
    step: int | None = None,
    order: Callable[[Mapping[str, Any]], Any] | None = None,
    keep: Callable[[Mapping[str, Any]], bool] | None = None,
    shown: Callable[[Mapping[str, Any]], Mapping[str, Any]] | None = None,
    empty: str = "Nothing of this kind was recorded.",
) -> int:
    """Open a run or trace, ask it, and print the rows. Returns the exit code.

    Args:
        path: what the user gave.
        answer: the question.
        columns: what the table shows; JSON has every column.
        json: one JSON document instead of a table.
        limit: most rows; 0: all.
        rank, step: only rows of these.
        order: sort key, where the view's own order is not wanted.
        keep: rows to show, where not all are wanted.
        shown: from a row to the cells of the table; JSON keeps the row as it is.
        empty: said where there are no rows.
    """
    source = open_source(path, rank=rank)
    with source.run as run:
        result = answer(run)
        rows: list[Mapping[str, Any]] = chosen(result.rows(), step=step)
        if keep is not None:
            rows = [row for row in rows if keep(row)]
        if order is not None:
            rows.sort(key=order)
        first = cut(rows, limit)
        if json:
            print_json(rows_document(result, run.directory, first, len(rows)))
        elif not rows:
            print(empty)
        else:
            alone = len(run.ranks) == 1
            print_table(
                [shown(row) for row in first] if shown else first,
                [column for column in columns if not (alone and column.key == "rank")],
            )
            note_cut(len(first), len(rows))
    return source.exit_code


def place(row: Mapping[str, Any]) -> str | None:
    """`file:line` of a row; the file alone where only the function is known."""
    if not row.get("file"):
        return None
    return f"{row['file']}:{row['line']}" if row["line"] else str(row["file"])
