"""`verify`: whether a run is whole and of the documented form."""

from __future__ import annotations

from typing import Annotated

import typer

from explorer.cli.options import JsonOption
from explorer.model.errors import EXIT_DONE, EXIT_UNREADABLE

SCHEMA = "neuron-explorer/verify/1"


def command(
    run: Annotated[str, typer.Argument(metavar="RUN", help="A run directory", show_default=False)],
    json: JsonOption = False,
) -> int:
    """Whether a run is whole: every listed file is there and of the documented form, every reference leads somewhere.

    Ends with 0 where nothing is damaged and with 3 where something is. Warnings (files that no manifest lists, a rank
    that never finished) do not count as damage.
    """
    from explorer.cli.output import print_json
    from explorer.store.reader import RunReader
    from explorer.store.verify import verify

    reader = RunReader(run)
    problems = verify(run)
    damaged = any(problem.severity == "error" for problem in problems)
    parts = [part for manifest in reader.manifests.values() for part in manifest.parts]
    rows = sum(part.rows for part in parts)
    if json:
        print_json(
            {
                "schema": SCHEMA,
                "run": reader.directory,
                "whole": not damaged,
                "ranks": len(reader.ranks),
                "parts": len(parts),
                "total_rows": rows,
                "problems": [problem.to_dict() for problem in problems],
            }
        )
    else:
        from explorer.cli.table import print_hanging
        from explorer.cli.units import harmless

        for problem in problems:
            where = " ".join(part for part in (problem.table, problem.path) if part) or f"rank {problem.rank}"
            print_hanging(f"{problem.severity:<7}  ", f"{where}: {problem.message}")
        state = "damaged" if damaged else "whole"
        print(
            f"{harmless(run)}: {state}; {len(parts):,} parts, {rows:,} rows, {len(reader.ranks)} rank{'' if len(reader.ranks) == 1 else 's'}"
        )
    return EXIT_UNREADABLE if damaged else EXIT_DONE
