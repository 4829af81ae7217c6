"""Key figures of a run as OpenMetrics text, for Prometheus push gateways, textfile collectors and dashboards.

After the OpenMetrics 1.0 text format: base units (seconds, bytes, ratios), one family after the other, `# EOF` at the end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from explorer.analysis.damage import lacking

if TYPE_CHECKING:
    from explorer.analysis.run import Run

PREFIX = "neuron_explorer"
_PARTS = ("compute", "exposed_communication", "exposed_copy", "idle")
_COUNTS = (
    ("steps", "Steps recorded"),
    ("events", "Events"),
    ("ops", "Framework ops"),
    ("kernels", "Device events"),
)

Sample = tuple[dict[str, str], str]


def openmetrics_text(run: Run, *, findings: bool = True) -> str:
    """The text of all families that the run has values for.

    Args:
        findings: also the saving of every finding, which takes as long as finding them.
    """
    lines: list[str] = []
    summary = run.summary().rows()
    ranks = [({"rank": str(row["rank"])}, row) for row in summary]
    _family(lines, "step_seconds", "seconds", "Median time of the complete steps", _times(ranks, "step_ns"))
    _family(
        lines,
        "corrected_step_seconds",
        "seconds",
        "Median step time without what recording cost",
        _times(ranks, "corrected_step_ns"),
    )
    _family(
        lines, "wall_seconds", "seconds", "Recorded time, capture pauses left out", _times(ranks, "wall_ns")
    )
    parts: list[Sample] = [
        ({**labels, "device": row["device"] or "cpu", "part": part}, _ratio(row[f"{part}_share"]))
        for labels, row in ranks
        for part in _PARTS
        if row[f"{part}_share"] is not None
    ]
    _family(
        lines,
        "device_time_ratio",
        "ratio",
        "Parts of the step time of the busiest device; they sum to 1",
        parts,
    )
    for name, text in _COUNTS:
        _family(lines, f"{name}_recorded", "", text, [(labels, str(row[name])) for labels, row in ranks])
    linked = [
        (labels, _ratio(row["linked_share"])) for labels, row in ranks if row["linked_share"] is not None
    ]
    _family(
        lines,
        "line_known_ratio",
        "ratio",
        "Part of the ops and device events whose source line is known",
        linked,
    )
    memory = [
        ({"rank": str(row["rank"]), "device": row["device"]}, str(row["peak_bytes"]))
        for row in run.memory().rows()
        if row["peak_bytes"] is not None
    ]
    _family(lines, "memory_peak_bytes", "bytes", "Most memory allocated at any time", memory)
    counted: Counter[tuple[str, str, str]] = Counter()
    for row in (*lacking(run.reader), *run.view("health")):
        counted[row["kind"], row["severity"], str(row["rank"])] += row["count"]
    problems = [
        ({"kind": kind, "severity": severity, "rank": rank}, str(count))
        for (kind, severity, rank), count in sorted(counted.items())
    ]
    _family(lines, "health_rows", "", "Rows or events that a health entry is about", problems)
    if findings:
        saved = [
            (
                {"finding": found.id, "rule": found.rule, "severity": found.severity, "title": found.title},
                _seconds(found.saving.expected),
            )
            for found in run.bottlenecks()
        ]
        _family(lines, "finding_saving_seconds", "seconds", "Expected saving per step of each finding", saved)
    return "\n".join([*lines, "# EOF"]) + "\n"


def _times(ranks: list[tuple[dict[str, str], dict[str, Any]]], column: str) -> list[Sample]:
    return [(labels, _seconds(row[column])) for labels, row in ranks if row[column] is not None]


def _seconds(ns: int) -> str:
    """Exact decimal seconds."""
    sign = "-" if ns < 0 else ""
    whole, rest = divmod(abs(ns), 10**9)
    return f"{sign}{whole}.{rest:09d}"


def _ratio(value: float) -> str:
    return f"{value:.6f}"


def _family(lines: list[str], name: str, unit: str, text: str, samples: Iterable[Sample]) -> None:
    """One gauge family; left out where it has no sample."""
    rows: dict[str, str] = {}
    for labels, value in samples:
        inner = ",".join(f'{key}="{_escaped(label)}"' for key, label in labels.items())
        rows.setdefault(f"{PREFIX}_{name}{{{inner}}}", value)
    if not rows:
        return
    lines.append(f"# TYPE {PREFIX}_{name} gauge")
    if unit:
        lines.append(f"# UNIT {PREFIX}_{name} {unit}")
    lines.append(f"# HELP {PREFIX}_{name} {_escaped(text)}")
    lines += [f"{key} {value}" for key, value in rows.items()]


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
