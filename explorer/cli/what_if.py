"""`what-if`: what a step would take with something faster, gone, or overlapped."""

from __future__ import annotations

from typing import Annotated

import typer

from explorer.cli.options import JsonOption, RunArgument
from explorer.model.errors import UsageError


def command(
    run: RunArgument,
    speedup: Annotated[
        list[str] | None,
        typer.Option(
            "--speedup",
            metavar="WAY=VALUE:FACTORx",
            help="line=model.py:57:2x, op=aten::mm:1.5x, phase=optimizer:3x",
        ),
    ] = None,
    remove: Annotated[
        list[str] | None,
        typer.Option(
            "--remove",
            metavar="WHAT",
            help="sync, sync=train.py:57, data, gc, io, compile, copy, line=..., op=...",
        ),
    ] = None,
    overlap: Annotated[
        list[str] | None, typer.Option("--overlap", metavar="WHAT", help="copies or collectives")
    ] = None,
    json: JsonOption = False,
) -> int:
    """Predict the step time with changes, by replaying the run's dependency graph. Several changes act together.

    Work that is hidden behind other work saves nothing, however long it is: that is what the replay is for.
    """
    from explorer.analysis.what_if import Replays, parse_overlap, parse_remove, parse_speedup
    from explorer.cli.output import print_json
    from explorer.cli.source_run import open_source
    from explorer.cli.units import duration, harmless

    edits = [
        *(parse_speedup(text) for text in speedup or ()),
        *(parse_remove(text) for text in remove or ()),
        *(parse_overlap(text) for text in overlap or ()),
    ]
    if not edits:
        raise UsageError(
            "Nothing to change.", "Give --speedup, --remove or --overlap, such as --remove sync."
        )
    opened = open_source(run)
    prediction = Replays(opened.run.engine).predict(edits)
    if json:
        print_json({**prediction.to_dict(), "run": opened.run.directory})
        return opened.exit_code
    share = prediction.to_dict()["saving_share"]
    print(harmless("; ".join(prediction.edits)))
    print(f"step now        {duration(prediction.step_before_ns)}")
    print(f"step predicted  {duration(prediction.step_after_ns)}")
    print(f"saving          {duration(prediction.saving_ns)} ({share:.1%} of the step)")
    print(
        f"Median complete step of rank {prediction.rank} over {prediction.steps} steps, as recorded (profiling cost included)."
    )
    return opened.exit_code
