"""`report`: the answers as a file to share."""

from __future__ import annotations

from typing import Annotated

import typer

from explorer.cli.options import OUTPUT, RunArgument
from explorer.cli.run_name import name_of_source
from explorer.model.errors import UsageError

FORMATS = ("html", "md")


def command(
    run: RunArgument,
    output: Annotated[str | None, OUTPUT] = None,
    format_: Annotated[
        str | None,
        typer.Option(
            "--format", metavar="html|md", help="Default: by the file's ending, else html", show_default=False
        ),
    ] = None,
) -> int:
    """The answers as one file: HTML that opens offline anywhere, or Markdown for a pull request."""
    kind = format_ or ("md" if output and output.endswith((".md", ".markdown")) else "html")
    if kind not in FORMATS:
        raise UsageError(f"There is no report format '{kind}'.", f"Choose one of: {', '.join(FORMATS)}.")
    from explorer.cli.output import note, refuse_unwritable, write_text
    from explorer.cli.source_run import open_source
    from explorer.cli.units import harmless

    target = output or f"{name_of_source(run, 'report')}.html"
    remedy = "Choose another file with -o."
    opened = open_source(run)
    printed = output == "-" or (output is None and kind == "md")
    if not printed:
        refuse_unwritable(target, remedy)
    if kind == "html":
        from explorer.report.html import html_report

        text = html_report(opened.run)
    else:
        from explorer.report.markdown import markdown_report

        text = markdown_report(opened.run)
    if printed:
        print(harmless(text), end="")
        return opened.exit_code
    write_text(target, text, remedy=remedy)
    note(f"report: {target}")
    return opened.exit_code
