"""`summary`: the few numbers that say how a run does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from explorer.cli.options import JsonOption, RankOption, RunArgument

if TYPE_CHECKING:
    from explorer.analysis.key_figures import Overview
    from explorer.analysis.result import Result
    from explorer.analysis.run import Run

SCHEMA = "neuron-explorer/summary/1"


def command(run: RunArgument, rank: RankOption = None, json: JsonOption = False) -> int:
    """The few numbers that say how a run does: step time, where it goes, what was recorded, what is doubtful."""
    from explorer.analysis.key_figures import overview
    from explorer.cli.output import finite, print_json
    from explorer.cli.source_run import open_source

    source = open_source(run, rank=rank)
    with source.run as opened:
        found = overview(opened)
        ranks = opened.summary()
        if json:
            figures = [asdict(figure) for figure in found.figures]
            parts = [asdict(part) for part in found.worst.parts] if found.worst else []
            print_json(
                {
                    "schema": SCHEMA,
                    "run": opened.directory,
                    "figures": figures,
                    "parts": parts,
                    "ranks": finite(ranks.rows()),
                    "lines_known": finite(opened.coverage().rows()),
                    "health": opened.health().rows(),
                }
            )
        else:
            _print(run, opened, found, ranks)
    return source.exit_code


def _print(given: str, run: Run, found: Overview, ranks: Result) -> None:
    from rich.text import Text

    from explorer.analysis.run_facts import run_facts
    from explorer.cli.lines_known import print_lines_known
    from explorer.cli.table import Column, console, print_hanging, print_table

    out = console()
    facts = run_facts(run)
    out.print(Text(given, style="bold"), soft_wrap=True)
    print_hanging("", facts.sentence, to=out)
    tones = {"good": "green", "bad": "red"}
    titles = max((len(figure.title) for figure in found.figures), default=0)
    values = max((len(figure.value) for figure in found.figures), default=0)
    for figure in found.figures:
        lead = Text.assemble(
            f"  {figure.title:<{titles}}  ",
            (f"{figure.value:>{values}}  ", f"bold {tones.get(figure.tone, '')}".strip()),
        )
        print_hanging(lead, figure.sentence, to=out)
    if without := _without_recording(found, ranks):
        print_hanging("  ", without, to=out)
    if found.worst and found.worst.parts:
        out.print()
        what = "Mean step" if found.worst.has_steps else "The recording"
        print_table(
            [asdict(part) for part in sorted(found.worst.parts, key=lambda part: -part.duration_ns)],
            (
                Column("share", "Share", "share", style="bold"),
                Column("duration_ns", what, "duration"),
                Column("label", "Part"),
                Column("meaning", "", flexible=True),
            ),
            to=out,
        )
    if len(ranks) > 1:
        out.print()
        print_table(
            ranks.rows(),
            (
                Column("rank", "Rank", "number"),
                Column("complete_steps", "Steps", "number", priority=2),
                Column("step_ns", "Step", "duration", style="bold"),
                Column("device", "Device", priority=2),
                Column("compute_share", "Compute", "share"),
                Column("exposed_communication_share", "Comm.", "share"),
                Column("exposed_copy_share", "Copies", "share", priority=1),
                Column("idle_share", "Idle", "share"),
            ),
            to=out,
        )
    out.print()
    print_lines_known(run, every_phase=False)
    print_troubles(run)
    out.print()
    out.print(Text(f"What to change: neuron-explorer bottlenecks {given}", style="dim"), soft_wrap=True)


def _without_recording(found: Overview, ranks: Result) -> str:
    """A sentence where recording took a part of the step that shows: findings speak of the rest."""
    from explorer.cli.units import duration

    for row in ranks.rows():
        if (
            found.worst
            and row["rank"] == found.worst.rank
            and row["corrected_step_ns"] < 0.99 * row["step_ns"]
        ):
            what = "a step" if found.worst.has_steps else "the program"
            return f"Times are as recorded. Without what recording cost {what} takes {duration(row['corrected_step_ns'])}, which findings speak of."
    return ""


def print_troubles(run: Run) -> None:
    """Health rows that are warnings or errors, worst first, one line a kind."""
    from rich.text import Text

    from explorer.cli.table import console, print_hanging

    styles = {"error": "red", "warning": "yellow"}
    kinds: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in run.health():
        if row["severity"] in styles:
            kinds.setdefault((row["severity"], row["kind"]), []).append(row)
    for (severity, _), rows in kinds.items():
        ranks = f"{len(rows)} ranks, rank {rows[0]['rank']}: " if len(rows) > 1 else ""
        print_hanging(
            Text(f"{severity:<7}  ", style=styles[severity]), f"{ranks}{sentence(rows[0])}", to=console()
        )


def sentence(row: Mapping[str, Any]) -> str:
    """A health row's message and remedy as text."""
    parts = [str(part).strip().rstrip(".") + "." for part in (row["message"], row["remedy"]) if part]
    return " ".join(parts)
