"""`cache`: what imported traces take, and how to remove them."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import Annotated

import typer

from explorer.cli.options import CacheOption, JsonOption
from explorer.model.errors import EXIT_DONE, UsageError

SCHEMA = "neuron-explorer/cache/1"


def command(
    action: Annotated[str, typer.Argument(metavar="list|clear|path", help="What to do")] = "list",
    cache_dir: CacheOption = None,
    json: JsonOption = False,
) -> int:
    """Traces that reading verbs imported on the way, kept by content so that reading them again is instant."""
    from explorer.cli.output import print_json
    from explorer.cli.units import harmless
    from explorer.collectors.run_cache import RunCache

    cache = RunCache(cache_dir)
    if action == "path":
        print(cache.directory)
    elif action == "clear":
        count, freed = cache.clear()
        if json:
            print_json(
                {"schema": SCHEMA, "directory": cache.directory, "removed": count, "freed_bytes": freed}
            )
        else:
            print(f"Removed {count} runs, {freed / 1e6:,.1f} MB, from {cache.directory}.")
    elif action == "list":
        entries = cache.entries()
        if json:
            print_json(
                {
                    "schema": SCHEMA,
                    "directory": cache.directory,
                    "entries": [asdict(entry) for entry in entries],
                }
            )
            return EXIT_DONE
        for entry in entries:
            used = time.strftime("%Y-%m-%d %H:%M", time.localtime(entry.used_ns / 1e9))
            print(harmless(f"{entry.size_bytes / 1e6:>10,.1f} MB  {used}  {', '.join(entry.sources)}"))
        total = sum(entry.size_bytes for entry in entries)
        print(harmless(f"{len(entries)} runs, {total / 1e6:,.1f} MB in {cache.directory}"))
    else:
        raise UsageError(f"cache {action!r} is unknown.", "Use list, clear or path.")
    return EXIT_DONE
