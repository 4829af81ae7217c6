"""`check`: hold a run to its budget; a gate for continuous integration."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated

import typer

from explorer.cli.options import JsonOption, RunArgument
from explorer.model.errors import EXIT_CHECK_FAILED, EXIT_DONE, UsageError

if TYPE_CHECKING:
    from explorer.analysis.budget import Budget, Outcome

SCHEMA = "neuron-explorer/check/1"


def command(
    run: RunArgument,
    baseline: Annotated[
        str | None,
        typer.Option("--baseline", metavar="RUN", help="The run to compare with", show_default=False),
    ] = None,
    rules: Annotated[
        str | None,
        typer.Option(
            "--rules",
            metavar="FILE",
            help="TOML file with the rules; default: pyproject.toml",
            show_default=False,
        ),
    ] = None,
    max_regression: Annotated[
        str | None,
        typer.Option(
            "--max-regression",
            metavar="SHARE",
            help="5% or 0.05: largest growth of the step",
            show_default=False,
        ),
    ] = None,
    forbid: Annotated[
        list[str] | None,
        typer.Option("--forbid", metavar="RULE", help="A rule that must find nothing", show_default=False),
    ] = None,
    max_memory: Annotated[
        str | None, typer.Option("--max-memory", metavar="SIZE", help="Such as '2 GB'", show_default=False)
    ] = None,
    junit: Annotated[
        str | None,
        typer.Option("--junit", metavar="FILE", help="Write the outcomes as JUnit XML", show_default=False),
    ] = None,
    summary: Annotated[
        str | None,
        typer.Option(
            "--summary",
            metavar="FILE",
            help="Append a Markdown summary (default in GitHub Actions: its step summary)",
            show_default=False,
        ),
    ] = None,
    json: JsonOption = False,
) -> int:
    """Hold a run to its budget: exit code 0 where everything holds, 1 where something does not.

    Rules come from [tool.neuron-explorer.check] in pyproject.toml or from a TOML file; options override them. A growth of
    the step fails only where the whole 95 % interval lies above the limit: noise does not break a build. A rule that
    cannot be checked is said and does not fail.
    """
    from dataclasses import replace

    from explorer.analysis.budget import check, load_budget, size_bytes
    from explorer.cli.output import print_json, write_text
    from explorer.cli.source_run import open_source

    budget = load_budget(rules)
    try:
        if max_regression is not None:
            budget = replace(budget, max_regression=_share(max_regression))
        if max_memory is not None:
            budget = replace(budget, max_memory=size_bytes(max_memory))
    except ValueError as error:
        raise UsageError(f"{error}.") from None
    if forbid:
        budget = replace(budget, forbidden=(*budget.forbidden, *forbid))
    _known_rules(budget)
    opened = open_source(run)
    outcomes = check(opened.run, budget, open_source(baseline).run if baseline else None)
    failed = [outcome for outcome in outcomes if outcome.passed is False]
    if junit:
        from explorer.report.junit import junit_xml

        write_text(junit, junit_xml(outcomes, opened.run.directory))
    if target := summary or os.environ.get("GITHUB_STEP_SUMMARY"):
        write_text(target, _markdown(outcomes, opened.run.directory), mode="a")
    if json:
        rows = [{"rule": o.rule, "passed": o.passed, "message": o.message} for o in outcomes]
        print_json({"schema": SCHEMA, "run": opened.run.directory, "passed": not failed, "outcomes": rows})
    else:
        from explorer.cli.table import print_hanging

        for outcome in outcomes:
            print_hanging(f"{_WORDS[outcome.passed]:<11}  ", f"{outcome.rule}: {outcome.message}")
    return EXIT_CHECK_FAILED if failed else opened.exit_code or EXIT_DONE


_WORDS = {True: "ok", False: "FAILED", None: "not checked"}


def _share(text: str) -> float:
    try:
        return float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        raise ValueError(f"'{text}' is not a share; write 5% or 0.05") from None


def _known_rules(budget: Budget) -> None:
    from difflib import get_close_matches

    from explorer.analysis.findings import all_rules

    names = {rule.name for rule in all_rules()}
    for rule in budget.forbidden:
        if rule not in names:
            near = get_close_matches(rule, names, 3, 0.0)
            raise UsageError(
                f"There is no rule '{rule}'.",
                f"Did you mean {', '.join(near[:-1])} or {near[-1]}? docs/rules/index.md lists all.",
            )


def _markdown(outcomes: list[Outcome], run: str) -> str:
    rows = "".join(
        f"| {_WORDS[o.passed]} | {o.rule} | {o.message.replace('|', chr(92) + '|')} |\n" for o in outcomes
    )
    return f"### neuron-explorer check of `{run}`\n\n| outcome | rule | measured |\n|---|---|---|\n{rows}\n"
