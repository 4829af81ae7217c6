"""`health`: what is missing, broken, repaired or doubtful in a run."""

from __future__ import annotations

from explorer.cli.options import JsonOption, RankOption, RunArgument


def command(run: RunArgument, rank: RankOption = None, json: JsonOption = False) -> int:
    """What is missing, broken, repaired or doubtful in a run, what to do about it, and which answers it touches."""
    from explorer.cli.lines_known import print_lines_known
    from explorer.cli.output import finite, print_json, rows_document
    from explorer.cli.source_run import open_source

    source = open_source(run, rank=rank)
    with source.run as opened:
        result = opened.health()
        rows = result.rows()
        if json:
            print_json(
                rows_document(
                    result, opened.directory, rows, len(rows), lines_known=finite(opened.coverage().rows())
                )
            )
        else:
            if rows:
                _print(rows, several_ranks=len(opened.ranks) > 1)
            else:
                print("Nothing is missing, broken or doubtful.")
            print_lines_known(opened, every_phase=True)
    return source.exit_code


def _print(rows: list[dict], several_ranks: bool) -> None:
    from rich.text import Text

    from explorer.cli.table import console, print_hanging

    out = console()
    styles = {"error": "red", "warning": "yellow", "info": "cyan"}
    kinds = max(len(row["kind"]) for row in rows)
    for row in rows:
        lead = Text.assemble(
            (f"{row['severity']:<7}  ", styles.get(row["severity"], "")),
            (f"{row['kind']:<{kinds}}  ", "bold"),
        )
        where = f"Rank {row['rank']}: " if several_ranks else ""
        body = Text(f"{where}{row['message']}")
        if row["remedy"]:
            body.append(f"\n{row['remedy']}", style="dim")
        if row["affects"]:
            body.append(f"\nLess certain for it: {row['affects']}", style="dim")
        print_hanging(lead, body, to=out)
