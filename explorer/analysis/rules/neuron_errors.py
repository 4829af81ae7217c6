"""Errors that the device itself reported: NaN, accesses out of bounds, and others."""

from __future__ import annotations

from collections.abc import Sequence

from explorer.analysis.engine import literal
from explorer.analysis.neuron.rule_scope import NeuronScope
from explorer.analysis.rule import Draft, Rule, Setting
from explorer.analysis.rule_context import RuleContext
from explorer.model.finding import Saving

MOST_PLACED = 50
"""Rows of one description that are led back to a line."""

_KINDS = (
    (
        ("nan", "inf", "numerical", "overflow"),
        "numerical",
        "Find the first operator whose output holds it (torch.autograd.set_detect_anomaly(True) on the host with the same batch), then look at divisions, "
        "logarithms and exponentials there, at the loss scale and at the learning rate. Results after it are wrong, however fast they come.",
    ),
    (
        ("out of bound", "out-of-bound", "oob", "bounds"),
        "out of bounds",
        "An index or an address lies outside its tensor: check indices of gathers, scatters and embeddings against the sizes, and tile offsets and masks in kernels.",
    ),
)
_OTHER = "Results of these executions cannot be trusted: look at the runtime's log (NEURON_RT_LOG_LEVEL=INFO) at this time, and repeat the step on another core to tell the program from the device."


def check(context: RuleContext) -> Sequence[Draft]:
    scope = NeuronScope.of(context)
    rank = context.scope.rank
    found = context.rows(
        f"""SELECT CAST(type AS VARCHAR) AS type, coalesce(description, '') AS description, count(*) AS errors FROM neuron.Error
        WHERE rank = {rank} AND CAST(type AS VARCHAR) IN ('Errors', 'Warnings') GROUP BY ALL
        HAVING errors >= {context.setting(RULE, "rows"):.0f} ORDER BY type, errors DESC, description"""
    )
    drafts = []
    for row in found:
        where = f"""rank = {rank} AND CAST(type AS VARCHAR) = {literal(row["type"])} AND coalesce(description, '') = {literal(row["description"])}"""
        before = f"""SELECT DISTINCT i.id + o.id_offset AS event_id, i.ns
FROM (SELECT rank, profile, coalesce(pcore_idx, 0) AS core, timestamp FROM neuron.Error WHERE {where} ORDER BY timestamp LIMIT {MOST_PLACED}) AS x
ASOF JOIN (SELECT rank, profile, coalesce(pcore_idx, 0) AS core, start_ts, id, coalesce(duration_ns, end_ts - start_ts) AS ns
           FROM neuron.Instruction) AS i
  ON i.rank = x.rank AND i.profile = x.profile AND i.core = x.core AND x.timestamp >= i.start_ts
JOIN neuron.EventOffsets AS o ON o.rank = i.rank AND o.profile = i.profile AND o.table_name = 'Instruction'"""
        evidence, _ = context.evidence(
            "The device reports it {errors} times, first {first_ns} after the profile's start.",
            f"""SELECT count(*) AS errors, min(timestamp) - (SELECT min(start_ts) FROM neuron.Instruction i WHERE i.rank = {rank} AND i.profile = any_value(x.profile)) AS first_ns
FROM neuron.Error AS x WHERE {where}""",
            f"SELECT event_id FROM ({before}) ORDER BY event_id",
        )
        text = " ".join(row["description"].split()).rstrip(".") or "no description"
        kind, advice = next(
            ((kind, advice) for words, kind, advice in _KINDS if any(word in text.lower() for word in words)),
            ("", _OTHER),
        )
        drafts.append(
            Draft(
                title=f"The device reported {_what(row['type'], kind)}: {text}",
                line_times_ns=scope.lines(before),
                saving=Saving(0, 0, 0, "none"),
                evidence=[evidence],
                advice=advice,
                affected="",
                side="device",
                confidence="medium",
                caveats=(
                    "The lines are of the last instruction that began on the core before it; the cause may lie earlier.",
                ),
                key=f"{row['type']} {text}",
                notice="high" if row["type"] == "Errors" else "medium",
            )
        )
    return drafts


def _what(type_: str, kind: str) -> str:
    name = "error" if type_ == "Errors" else "warning"
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}" + (f" ({kind})" if kind else "")


RULE = Rule(
    name="neuron_errors",
    title="Errors of the device",
    specificity=2,
    needs=("neuron",),
    check=check,
    settings=(
        Setting(
            "rows",
            1,
            "Fewest rows with a description",
            "public profile schema reference: table Error holds numerical errors and accesses out of bounds, any of which counts",
        ),
    ),
)
