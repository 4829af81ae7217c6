"""How much of a run has input shapes, from which work, rooflines and MFU are counted."""

from __future__ import annotations

from explorer.analysis.engine import Engine

NEARLY_ALL = 0.95
"""Of the ops; some have no inputs."""


def without_shapes(engine: Engine) -> str:
    """One sentence for what has no shapes and is so left out; empty where nothing is, or where there are no shapes at all."""
    row = engine.sql(
        """SELECT count(*) FILTER (step IS NOT NULL) AS steps, count(*) FILTER (step IS NOT NULL AND known > 0) AS known_steps,
          min(step) FILTER (known > 0) AS first, max(step) FILTER (known > 0) AS last, sum(ops)::BIGINT AS ops, sum(known)::BIGINT AS known
        FROM (SELECT rank, step, count(*) AS ops, count(shapes) AS known FROM events WHERE category = 'op' GROUP BY rank, step)"""
    ).rows()[0]
    if not row["known"]:
        return ""
    record = "record with --shapes all (record_shapes=True in a program) for the rest"
    if row["known_steps"] and row["known_steps"] < row["steps"]:
        ranks = " of all ranks" if len(engine.reader.ranks) > 1 else ""
        which = (
            f"step {row['first']}" if row["first"] == row["last"] else f"from {row['first']} to {row['last']}"
        )
        return (
            f"Covers {row['known_steps']} of {row['steps']} steps{ranks}, {which}: the others have no"
            f" shapes; {record}."
        )
    share = row["known"] / row["ops"]
    return (
        f"Covers {share:.0%} of the ops: the others have no shapes; {record}." if share < NEARLY_ALL else ""
    )
