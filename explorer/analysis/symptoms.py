"""One cause, one finding: what only shows its time again is listed under it."""

from __future__ import annotations

from explorer.analysis.candidate import Candidate
from explorer.analysis.intervals import Intervals
from explorer.analysis.savings import scaled

SYMPTOM_OVERLAP = 0.5
"""A finding with more than this part of its time inside more specific ones is a symptom of them."""


def without_symptoms(candidates: list[Candidate]) -> list[Candidate]:
    """Causes first: time that a more specific finding claims is taken from the others, which become its symptoms."""
    kept: list[Candidate] = []
    for candidate in sorted(candidates, key=lambda item: item.order):
        if candidate.saving.expected <= 0:
            continue
        same_side = [other for other in kept if other.draft.side == candidate.draft.side]
        overlaps = [(candidate.time.overlap_ns(other.time), other) for other in same_side]
        claimed = Intervals.of([], [])
        for overlap, other in overlaps:
            if overlap:
                claimed = claimed.union(other.time)
        share = candidate.time.overlap_ns(claimed) / max(1, candidate.time.total_ns)
        if share > SYMPTOM_OVERLAP:
            cause = max(overlaps, key=lambda item: item[0])[1]
            cause.symptoms.append(f"{candidate.rule.name}: {candidate.draft.title}")
            continue
        if share:
            candidate.saving = scaled(candidate.saving, 1 - share)
            candidate.overlaps_other = True
        kept.append(candidate)
    return kept
