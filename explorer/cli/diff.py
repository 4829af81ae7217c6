"""`diff`: what changed between two runs, whether it is more than noise, and what explains it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from explorer.cli.options import JsonOption
from explorer.model.errors import EXIT_DONE, UsageError

if TYPE_CHECKING:
    from explorer.analysis.diff.comparison import Comparison

_SENTENCES = {
    "slower": "slower",
    "faster": "faster",
    "no_significant_change": "no significant change",
}


def command(
    before: Annotated[str, typer.Argument(metavar="A", help="The run or trace before", show_default=False)],
    after: Annotated[str, typer.Argument(metavar="B", help="The run or trace after", show_default=False)],
    by: Annotated[
        str | None,
        typer.Option(
            "--by", help="Only one table: kind, phase, module, line, op or kernel", show_default=False
        ),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=0, help="Most rows a table; 0: all")] = 8,
    html: Annotated[
        str | None,
        typer.Option(
            "--html", metavar="FILE", help="Write the comparison as one HTML file", show_default=False
        ),
    ] = None,
    json: JsonOption = False,
) -> int:
    """What changed from run A to run B: the step time with a verdict against noise, and what explains it.

    The tables compare time on the critical path per step, so the changes of each table add up to the change of the step.
    Lines are followed through edits of the source, kernels through new names. Works across devices and vendors.
    """
    from explorer.analysis.diff.comparison import DIMENSIONS, compare
    from explorer.cli.output import print_json, refuse_unwritable, write_text
    from explorer.cli.source_run import open_source

    if by is not None and by not in DIMENSIONS:
        raise UsageError(f"Cannot compare by '{by}'.", f"Choose one of: {', '.join(DIMENSIONS)}.")
    a, b = open_source(before), open_source(after)
    remedy = "Choose another file with --html."
    if html:
        refuse_unwritable(html, remedy)
    comparison = compare(a.run, b.run)
    if html:
        from explorer.report.html.diff_page import diff_html

        write_text(html, diff_html(comparison), remedy=remedy)
    if json:
        print_json(comparison.to_dict(limit or None))
    else:
        _print(comparison, [by] if by else list(DIMENSIONS), limit)
    return max(a.exit_code, b.exit_code, EXIT_DONE)


def _print(comparison: Comparison, tables: list[str], limit: int) -> None:
    from explorer.cli.table import Column, print_hanging, print_table, say
    from explorer.cli.units import duration

    verdict = comparison.verdict
    before = duration(comparison.before_ns) if verdict.steps_before else "no step"
    after = duration(comparison.after_ns) if verdict.steps_after else "no step"
    change = f"  {verdict.change_text}" if verdict.change_text else ""
    say(f"step {before} -> {after}{change}  ({verdict.basis_text}, as recorded)")
    print(f"verdict: {_SENTENCES.get(verdict.answer) or f'undecided: {verdict.reason}'}")
    for difference in comparison.differences:
        weight = "NOT COMPARABLE: " if difference.weight == "blocks" else "note: "
        print_hanging(weight, f"{difference.what} {difference.before} -> {difference.after}")
    for name in tables:
        rows = [row for row in comparison.explained[name] if row.before_ns or row.after_ns]
        if name not in ("kind", "phase") and {row.key for row in rows} <= {"(none)"}:
            continue
        print()
        shown = rows[:limit] if limit else rows
        print_table(
            [
                {
                    "key": row.key,
                    "before": row.before_ns,
                    "after": row.after_ns,
                    "change": f"{'+' if row.change_ns >= 0 else '-'}{duration(abs(row.change_ns))}",
                    "status": "" if row.status == "same" else row.status,
                    "detail": row.detail,
                }
                for row in shown
            ],
            [
                Column("change", "change"),
                Column("before", "before", "duration", 1),
                Column("after", "after", "duration", 1),
                Column("key", name, "path" if name == "line" else "text", 0, flexible=True),
                Column("status", "status", "text", 2),
                Column("detail", "code" if name == "line" else "detail", "text", 3, flexible=True),
            ],
        )
        if len(shown) < len(rows):
            print(f"... {len(rows) - len(shown)} more; --limit 0 shows all")
