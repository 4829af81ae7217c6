"""Arithmetic of savings: another length of the step, and no more than there is."""

from __future__ import annotations

from explorer.model.finding import Saving


def scaled(saving: Saving, factor: float) -> Saving:
    """Every bound times a factor."""
    return Saving(
        low=round(saving.low * factor),
        expected=round(saving.expected * factor),
        high=round(saving.high * factor),
        basis=saving.basis,
    )


def capped(saving: Saving, limit_ns: int) -> Saving:
    """No bound above a limit, and none below 0."""
    limit_ns = max(0, limit_ns)
    return Saving(
        min(saving.low, limit_ns), min(saving.expected, limit_ns), min(saving.high, limit_ns), saving.basis
    )
