"""The bounds model for each source line of a profile."""

from __future__ import annotations

import pyarrow as pa

from explorer.analysis.engine import Engine
from explorer.analysis.neuron.computed_tables import NEURON_SITE_BOUNDS
from explorer.analysis.neuron.lanes import END, ProfileKey, profile_keys
from explorer.analysis.neuron.line_sums import LineSums
from explorer.analysis.neuron.part_bounds import INSTRUCTIONS, Work, part_bounds

_OFFSETS = "SELECT table_name, id_offset FROM neuron.EventOffsets WHERE rank = $1 AND profile = $2 AND table_name <> ''"
_ROWS = f"{INSTRUCTIONS} FROM neuron.Instruction WHERE rank = $1 AND profile = $2 AND id IS NOT NULL AND start_ts IS NOT NULL AND {END} IS NOT NULL"
_BLOCKS = "SELECT id FROM neuron.DmaPacketAggregated WHERE rank = $1 AND profile = $2 AND id IS NOT NULL"


def compute(engine: Engine) -> pa.Table:
    """The computed table neuron_site_bounds. Profiles whose ids join no events are left out."""
    schema = NEURON_SITE_BOUNDS.arrow_schema()
    lines: dict[int, LineSums] = {}
    parts = [schema.empty_table()]
    for key in profile_keys(engine):
        if key.rank not in lines:
            lines[key.rank] = LineSums(engine, key.rank)
        found = _profile(engine, key, lines[key.rank])
        if found is not None:
            parts.append(found.select(schema.names).cast(schema))
    return pa.concat_tables(parts)


def _profile(engine: Engine, key: ProfileKey, lines: LineSums) -> pa.Table | None:
    parameters = [key.rank, key.profile]
    offsets = {row["table_name"]: row["id_offset"] for row in engine.sql(_OFFSETS, parameters).rows()}
    if "Instruction" not in offsets:
        return None
    rows = engine.sql(_ROWS, parameters).arrow()
    place, part, share = lines.expand(rows.column("id").to_numpy() + offsets["Instruction"])
    core, lane, start, end, flops, transposes = (
        rows.column(name).to_numpy()[place] for name in ("core", "lane", "start_ts", "end_ts", "flops", "transposes")
    )  # fmt: skip
    work = Work(part, core, lane, start, end, flops, transposes, share)
    pairs = {"block": place[:0], "part": part[:0], "share": share[:0]}
    if "DmaPacketAggregated" in offsets:
        blocks = engine.sql(_BLOCKS, parameters).arrow().column("id").to_numpy()
        block, block_part, block_share = lines.expand(blocks + offsets["DmaPacketAggregated"])
        pairs = {"block": blocks[block], "part": block_part, "share": block_share}
    return part_bounds(engine, key, work, pa.table(pairs), {"site_id": lines.sites})
