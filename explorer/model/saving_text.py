"""A predicted saving in words, the same on every screen: its range, and what to expect of it."""

from __future__ import annotations

from explorer.model.finding import Finding
from explorer.model.quantity import duration_text


def saving_text(finding: Finding, *, trim: bool = False) -> str:
    """What stands behind 'saves': '4.28 ms to 8.64 ms of each step (expected 8.57 ms, 30.8 %)'.

    A bound is 'at most 6.24 ms of each step (expected 6.05 ms, 25.2 %)'. Numbers that read alike are given once. `trim` leaves
    off zeros behind the point. Empty where the finding speaks of no time.
    """
    if not finding.saves_time:
        return ""
    saving = finding.saving
    low, expected, high = (
        duration_text(value, trim=trim) for value in (saving.low, saving.expected, saving.high)
    )
    share = f"{100 * finding.saving_share:.1f} %"
    if saving.basis == "bound":
        extent = f"at most {high}"
    else:
        extent = high if low == high else f"{low} to {high}"
    inside = share if expected == high and extent != f"{low} to {high}" else f"expected {expected}, {share}"
    return f"{extent} of {finding.whole} ({inside})"
