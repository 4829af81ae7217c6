"""An engine for many questions at once: the tables that all rules read are copied into it first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from explorer.analysis.engine import Engine, damage_named

MOST_EVENTS = 3_000_000
"""Larger runs are queried where they lie, copying them would cost more than it saves: but for what is small in any run."""

# Views come after the tables they read: each copy makes the next one faster.
_COPIED = ("events", "stacks", "sites", "steps", "tracks", "host_states", "top_ops", "line_steps")
_SMALL = ("stacks", "sites", "steps", "tracks", "line_steps")


@contextmanager
def scratch_engine(
    engine: Engine, copied: Sequence[str] = _COPIED, *, ranks: Sequence[int] | None = None
) -> Iterator[Engine]:
    """An engine of its own over the same run, or some ranks of it, with equal answers, closed afterwards.

    Temporary tables hide the views of the same name, so the same SQL text reads them here and the views elsewhere.
    """
    reader = engine.reader if ranks is None else engine.reader.of_ranks(ranks)
    own = Engine(reader, memory_limit=engine.memory_limit, rolled_up=engine.rolled_up, keeps=True)
    try:
        large = sum(part.rows for part in reader.parts("events")) > MOST_EVENTS
        for name in copied:
            if not large or name in _SMALL:
                with damage_named(own.reader.directory):
                    _copy(own, name)
        yield own
    finally:
        own.close()


def _copy(own: Engine, name: str) -> None:
    text = f'SELECT * FROM memory.main."{name}"'
    own.relations.prepare(text)
    if name != "events":
        own.connection.execute(f'CREATE TEMP TABLE "{name}" AS {text}')
        return
    # Most events are ops. The others, all in the first of the table's blocks, are found without reading the rest of it.
    own.connection.execute(f"CREATE TEMP TABLE events AS {text} WHERE category IS DISTINCT FROM 'op'")
    own.connection.execute(f"INSERT INTO temp.events {text} WHERE category = 'op'")
