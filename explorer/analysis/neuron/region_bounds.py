"""The bounds model for each region of a profile: layers of the module tree, operators of the framework."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from explorer.analysis.engine import Engine
from explorer.analysis.neuron.computed_tables import NEURON_REGION_BOUNDS
from explorer.analysis.neuron.lanes import ProfileKey, profile_keys
from explorer.analysis.neuron.part_bounds import INSTRUCTIONS, Work, part_bounds
from explorer.model.neuron_flow import is_table

_PLACED = {
    "layer": """SELECT *, layer AS region FROM neuron.Instruction WHERE rank = $1 AND profile = $2 AND layer <> ''""",
    "framework": """SELECT i.*, f.region FROM neuron.Instruction AS i JOIN (
        SELECT raw_framework_id, min(framework_name) AS region FROM neuron.FrameworkInstruction
        WHERE rank = $1 AND profile = $2 AND framework_name <> '' GROUP BY raw_framework_id) AS f
      ON f.raw_framework_id = i.raw_framework_id WHERE i.rank = $1 AND i.profile = $2""",
}
_PAIRS = f"""
WITH touched AS (
    SELECT in_id AS block, out_id AS instruction FROM neuron.Flow
    WHERE rank = $1 AND profile = $2 AND {is_table("out_table", "Instruction")} AND {is_table("in_table", "DmaPacketAggregated")}
    UNION
    SELECT out_id, in_id FROM neuron.Flow
    WHERE rank = $1 AND profile = $2 AND {is_table("in_table", "Instruction")} AND {is_table("out_table", "DmaPacketAggregated")}
), pairs AS (
    SELECT DISTINCT t.block, n.part FROM touched AS t JOIN ({{placed}}) AS p ON p.id = t.instruction
    JOIN __neuron_regions AS n USING (region))
SELECT block, part, 1.0::DOUBLE / count(*) OVER (PARTITION BY block) AS share FROM pairs"""


def compute(engine: Engine) -> pa.Table:
    """The computed table neuron_region_bounds."""
    parts = [
        _kind(engine, key, kind, placed) for key in profile_keys(engine) for kind, placed in _PLACED.items()
    ]
    schema = NEURON_REGION_BOUNDS.arrow_schema()
    return pa.concat_tables(
        [schema.empty_table(), *(part.select(schema.names).cast(schema) for part in parts if part.num_rows)]
    )


def _kind(engine: Engine, key: ProfileKey, kind: str, placed: str) -> pa.Table:
    parameters = [key.rank, key.profile]
    names = [
        row["region"]
        for row in engine.sql(f"SELECT DISTINCT region FROM ({placed}) ORDER BY region", parameters).rows()
    ]
    regions = pa.table({"region": pa.array(names, pa.string()), "part": np.arange(len(names))})
    if not names:
        return regions
    engine.connection.register("__neuron_regions", regions)
    try:
        rows = engine.sql(
            f"{INSTRUCTIONS}, n.part FROM ({placed}) AS i JOIN __neuron_regions AS n USING (region)"
            " WHERE start_ts IS NOT NULL AND end_ts IS NOT NULL",
            parameters,
        ).arrow()
        pairs = engine.sql(_PAIRS.format(placed=placed), parameters).arrow()
    finally:
        engine.connection.unregister("__neuron_regions")
    columns = {
        name: rows.column(name).to_numpy() for name in ("core", "lane", "start_ts", "end_ts", "flops", "transposes", "part")
    }  # fmt: skip
    work = Work(
        columns["part"],
        columns["core"],
        columns["lane"],
        columns["start_ts"],
        columns["end_ts"],
        columns["flops"],
        columns["transposes"],
        np.ones(rows.num_rows),
    )
    return part_bounds(engine, key, work, pairs, {"kind": [kind] * len(names), "region": names})
