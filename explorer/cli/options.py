"""Options that verbs share, so that they read the same everywhere."""

from __future__ import annotations

from typing import Annotated

import typer

RunArgument = Annotated[
    str, typer.Argument(metavar="RUN", help="A run directory or a trace", show_default=False)
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document")]
LimitOption = Annotated[int, typer.Option("--limit", "-n", min=0, help="Most rows to show; 0: all")]
RankOption = Annotated[int | None, typer.Option("--rank", min=0, help="Only this rank", show_default=False)]
StepOption = Annotated[int | None, typer.Option("--step", help="Only this step", show_default=False)]
ModeOption = Annotated[
    str, typer.Option("--mode", help="Definitions: native, hta (HTA's) or tracelens (TraceLens's)")
]
OUTPUT = typer.Option(
    "--output", "-o", metavar="FILE", help="Where to write it; - for standard output", show_default=False
)
"""For verbs that write one file; some go without."""
CacheOption = Annotated[
    str | None,
    typer.Option(
        "--cache-dir",
        metavar="DIR",
        help="Keep imported traces here [default: $NEURON_EXPLORER_CACHE, else the user's cache folder]",
        show_default=False,
    ),
]
