"""Why some ranks compute longer than others: they are given more tokens or samples, or their experts are."""

from __future__ import annotations

from explorer.analysis.ranks.query import query
from explorer.analysis.rule_context import RuleContext
from explorer.model.finding import Evidence

SMALLEST_RATIO = 1.1
"""The rank that is given most must be given this many times the mean (ours: below it nobody would look there)."""

SMALLEST_CORRELATION = 0.6
"""Within steps, between what ranks are given and how long they compute (ours: over a third of the variation explained)."""

WORK_KINDS = ("op", "kernel", "compute")
"""Kinds of causes on a rank with more to compute."""

_STATEMENTS = {
    "experts": (
        "exchanged_bytes",
        "The rank that exchanges most in all-to-alls moves {most_bytes} per step, the mean rank {mean_bytes}; compute time goes"
        " with it (correlation {correlation}).",
    ),
    "inputs": (
        "input_rows",
        "The rank that is given most works on {most} tokens or samples per step, the mean rank on {mean}; compute time goes"
        " with it (correlation {correlation}).",
    ),
}


def given_work(context: RuleContext) -> tuple[str, Evidence] | None:
    """('experts' or 'inputs', the evidence) where what ranks are given explains how long they compute; else None."""
    for reason, (column, statement) in _STATEMENTS.items():
        unit = "_bytes" if column.endswith("_bytes") else ""
        evidence, row = context.of_job.evidence(
            statement,
            f"""SELECT avg(most)::BIGINT AS most{unit}, avg(mean)::BIGINT AS mean{unit}, avg(most) / avg(mean) AS ratio,
  round(nullif(any_value(correlation), 'nan'::DOUBLE), 2) AS correlation FROM (
  SELECT step, max({column}) AS most, avg({column}) AS mean, any_value(correlation) AS correlation FROM (
    SELECT *, corr(given, took) OVER () AS correlation FROM (
      SELECT *, {column} - avg({column}) OVER (PARTITION BY step) AS given, compute_ns - avg(compute_ns) OVER (PARTITION BY step) AS took
      FROM ({query("given_to_ranks")}) WHERE {column} > 0)) GROUP BY step HAVING count(*) > 1)""",
        )
        ratio, correlation = row.get("ratio"), row.get("correlation")
        if ratio is None or correlation is None:
            continue
        if ratio >= SMALLEST_RATIO and correlation >= SMALLEST_CORRELATION:
            return reason, evidence
    return None
