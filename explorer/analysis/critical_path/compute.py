"""The critical path of a whole run as one table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from explorer.analysis.critical_path.path_table import path_table
from explorer.analysis.critical_path.rank_events import load
from explorer.analysis.critical_path.walk import walk

if TYPE_CHECKING:
    import pyarrow as pa

    from explorer.analysis.engine import Engine


def compute(engine: Engine) -> pa.Table:
    """The pieces of every rank (columns: `explorer.analysis.computed.CRITICAL_PATH`)."""
    import pyarrow as pa

    from explorer.analysis.computed import CRITICAL_PATH

    parts = [
        path_table(events, walk(events))
        for rank in engine.reader.ranks
        if (events := load(engine, rank)) is not None
    ]
    schema = pa.schema([field.with_nullable(True) for field in CRITICAL_PATH.arrow_schema()])
    return pa.concat_tables([part.cast(schema) for part in parts]) if parts else schema.empty_table()
