"""What every reading verb of a table does: cut the rows, print a table or one JSON document, say what was left out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from explorer.cli.output import note_cut, print_json, rows_document
from explorer.cli.source_run import open_source
from explorer.cli.table import Column, print_table, say
from explorer.model.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa

    from explorer.analysis.result import Result
    from explorer.analysis.run import Run


_TIES = ("rank", "step", "start_ns", "event_id", "device", "stream", "name")


def read(
    path: str,
    answer: Callable[[Run], Result],
    columns: Sequence[Column],
    *,
    json: bool,
    limit: int = 0,
    rank: int | None = None,
    step: int | None = None,
    order: str = "",
    only: str = "",
    shown: Callable[[Mapping[str, Any]], Mapping[str, Any]] | None = None,
    empty: str = "Nothing of this kind was recorded.",
    note: Callable[[Run], str] | None = None,
) -> int:
    """Open a run or trace, ask it, and print the rows. Returns the exit code. Raises UsageError for a step that is not there.

    Args:
        path: what the user gave.
        answer: the question.
        columns: what the table shows; JSON has every column.
        json: one JSON document instead of a table.
        limit: most rows; 0: all.
        rank, step: only these.
        order: column to sort by, largest first, where the view's own order is not wanted.
        only: a boolean column; rows where it is not true are left out.
        shown: from a row to the cells of the table; JSON keeps the row as it is.
        empty: said where there are no rows.
        note: what is to be said of the numbers, after the table; nothing where it is empty.
    """
    source = open_source(path, rank=rank)
    with source.run as run:
        if step is not None:
            from explorer.analysis.trace_rows import step_window

            step_window(run, step)
        result = answer(run)
        rows = _chosen(result.arrow(), step, only)
        if order and rows.num_rows:
            # Equal ones in the same order each time: views that are not sorted come as the threads made them.
            ties = [name for name in _TIES if name in rows.column_names and name != order]
            rows = rows.sort_by([(order, "descending"), *((name, "ascending") for name in ties)])
        # Rows become Python objects only once they are cut: a run may hold millions of them.
        first = rows.slice(0, min(limit or rows.num_rows, rows.num_rows)).to_pylist()
        if json:
            print_json(rows_document(result, run.directory, first, rows.num_rows))
        elif not first:
            say(empty if step is None or not len(result) else f"Nothing of this kind in step {step}.")
        else:
            alone = len(run.ranks) == 1
            print_table(
                [shown(row) for row in first] if shown else first,
                [column for column in columns if not (alone and column.key == "rank")],
            )
            note_cut(len(first), rows.num_rows)
            if text := note(run) if note else "":
                say(text)
    return source.exit_code


def _chosen(rows: pa.Table, step: int | None, only: str) -> pa.Table:
    import pyarrow.compute as pc

    if step is not None and "step" in rows.column_names:
        rows = rows.filter(pc.equal(rows.column("step"), step))
    return rows.filter(rows.column(only)) if only else rows


def step_of_mode(step: int | None, mode: str) -> int | None:
    """The step asked for. Raises UsageError where another tool's definitions, which know no steps, were asked for too."""
    if step is not None and mode != "native":
        raise UsageError(f"--step does not go with --mode {mode}: its rows are of the whole run.")
    return step


def named(function: str | None) -> str:
    """A function where there is no code to show: `main()`; `<module>` is none to call."""
    return f"{function}()" if function and not function.endswith(">") else function or ""
