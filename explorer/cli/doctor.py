"""`doctor`: what this machine can record, and what it cannot and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

from explorer.cli.options import JsonOption

if TYPE_CHECKING:
    from explorer.cli.machine import Report


def command(json: JsonOption = False) -> None:
    """What this machine can record, and what it cannot and why.

    Checks Python, torch, the accelerator and its driver, permissions, the line recorder, optional packages, and which
    program named neuron-explorer a shell would start. Works without torch and loads nothing heavy besides it.
    """
    from explorer.cli import machine, output

    report = machine.examine()
    if json:
        output.print_json(report.to_dict())
    else:
        _print(report)


def _print(report: Report) -> None:
    from rich.text import Text

    from explorer.cli.table import console, print_hanging

    out = console()
    styles = {"ok": "green", "note": "yellow", "no": "red"}
    width = max(len(check.name) for check in report.checks)
    for check in report.checks:
        lead = Text.assemble(
            (f"{check.state:<4}  ", styles[check.state]), (f"{check.name:<{width}}  ", "bold")
        )
        body = Text(check.found)
        if check.remedy:
            body.append(f"\n{check.remedy}", style="dim")
        print_hanging(lead, body, to=out)
    out.print(
        Text("Not recorded here:" if report.not_captured else "Everything can be recorded here.", "bold")
    )
    for item in report.not_captured:
        print_hanging("  - ", f"{item.what}: {item.why}", to=out)
