"""`bottlenecks`: what costs most, which line, what to do, what it would save."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from explorer.cli.options import JsonOption, RankOption, RunArgument

if TYPE_CHECKING:
    from rich.console import Console

    from explorer.model.finding import Finding, Findings

SEVERITY_STYLES = {"high": "bold red", "medium": "yellow", "low": "cyan"}
_LINES = 3
_RULES = 4
_INDENT = "        "


def command(
    run: RunArgument,
    limit: Annotated[int, typer.Option("--limit", "-n", min=0, help="Most findings to show; 0: all")] = 10,
    evidence: Annotated[
        bool, typer.Option("--evidence", help="Also the SQL that reproduces each number")
    ] = False,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="RULE.SETTING=N", help="Change a threshold; docs/rules lists them"),
    ] = None,
    rank: RankOption = None,
    json: JsonOption = False,
) -> int:
    """What costs most, which line it is, what to do about it, and what that would save, worst first.

    Times are per step: the median complete step of the slowest rank. A saving is a prediction: replay comes from
    replaying the step without the cost; a bound is the most it can be. What could not be checked is listed with the reason.
    """
    from explorer.analysis.rule_settings import parsed
    from explorer.cli.output import print_json
    from explorer.cli.source_run import open_source

    source = open_source(run, rank=rank)
    with source.run as opened:
        findings = opened.bottlenecks(parsed(settings or []))
        if json:
            document = findings.to_dict()
            if limit:
                document["findings"] = document["findings"][:limit]
            print_json({**document, "total_findings": len(findings)})
        else:
            print_findings(findings, limit=limit, evidence=evidence, given=run)
    return source.exit_code


def print_findings(findings: Findings, *, limit: int = 10, evidence: bool = False, given: str = "") -> None:
    """Print findings worst first, then what could not be checked and what makes the answer doubtful."""
    from rich.text import Text

    from explorer.analysis.unchecked import unchecked
    from explorer.cli import units
    from explorer.cli.table import console, print_hanging

    out = console()
    step = f"step {units.duration(findings.step_ns)}" if findings.steps else units.duration(findings.step_ns)
    plural = "" if findings.steps == 1 else "s"
    steps = (
        f"{findings.steps} step{plural}" if findings.steps else "no steps: the whole recording counts as one"
    )
    ranks = f", {findings.ranks} ranks" if findings.ranks > 1 else ""
    if findings.step_ns < 0.99 * findings.recorded_step_ns:
        ranks += f"; {units.duration(findings.recorded_step_ns)} on average as recorded"
    count = f"{len(findings)} finding{'' if len(findings) == 1 else 's'}"
    out.print(Text(f"{count}  {step} ({steps}{ranks})", style="bold"), soft_wrap=True)
    for doubt in findings.doubts:
        print_hanging(Text("but  ", style="yellow"), doubt, to=out)
    shown = findings[:limit] if limit else findings[:]
    for number, finding in enumerate(shown, 1):
        out.print()
        _print_one(out, number, finding, findings.own_caveats(finding), evidence)
    if not findings.findings:
        print_hanging(
            "  ", "No bottleneck was found: nothing that was checked would save 0.5 % of the step.", to=out
        )
    out.print()
    if len(shown) < len(findings):
        out.print(Text(f"{len(findings) - len(shown)} more: --limit 0", style="dim"))
    if findings.not_checked:
        out.print(Text("Not checked", style="bold"))
        for group in unchecked(findings.not_checked):
            # Many rules of one kind are a number; --json lists every one.
            names = f" ({', '.join(group.rules)})" if len(group.rules) <= _RULES else ""
            print_hanging("  - ", Text.assemble(group.sentence, (names, "dim")), to=out)
    for row in findings.health:
        if row["severity"] != "info":
            print_hanging(Text(f"{row['severity']:<7}  ", style="yellow"), row["message"], to=out)


def _print_one(out: Console, number: int, finding: Finding, caveats: Sequence[str], evidence: bool) -> None:
    from rich.text import Text

    from explorer.cli import units
    from explorer.cli.table import print_hanging
    from explorer.model.saving_text import saving_text

    style = SEVERITY_STYLES.get(finding.severity, "")
    lead = Text.assemble(f"{number:>2} ", (f"{finding.severity:<6} ", style))
    print_hanging(lead, Text(finding.title, style="bold"), to=out)
    if finding.saves_time:
        print_hanging(
            f"{_INDENT}  saves  ",
            Text.assemble(
                (saving_text(finding), style),
                (f"  {finding.saving.basis}; confidence {finding.confidence}", "dim"),
            ),
            to=out,
        )
    for line in finding.lines[:_LINES]:
        body = Text.assemble((f"{line.file}:{line.line}", "cyan"), f"  {line.code or line.function}")
        body.append(f"  {units.duration(line.time_ns)} ({units.share(line.share)})", style="dim")
        print_hanging(f"{_INDENT}  line   ", body, to=out)
    if len(finding.lines) > _LINES:
        out.print(Text(f"{_INDENT}         and {len(finding.lines) - _LINES} more lines", style="dim"))
    print_hanging(f"{_INDENT}  do     ", finding.advice, to=out)
    for item in finding.evidence:
        print_hanging(Text(f"{_INDENT}  seen   ", style="dim"), Text(item.statement, style="dim"), to=out)
        if evidence:
            print_hanging(Text(f"{_INDENT}  sql    ", style="dim"), Text(item.sql, style="dim"), to=out)
    for caveat in caveats:
        print_hanging(Text(f"{_INDENT}  but    ", style="dim"), Text(caveat, style="dim"), to=out)
