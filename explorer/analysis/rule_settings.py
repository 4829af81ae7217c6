"""Thresholds of rules that a user changes: read from text and held to those that exist."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from difflib import get_close_matches

from explorer.analysis.findings import all_rules
from explorer.model.errors import UsageError


def known() -> dict[str, float]:
    """Every setting as '<rule>.<setting>' with its default."""
    return {
        f"{rule.name}.{setting.name}": setting.default for rule in all_rules() for setting in rule.settings
    }


def checked(settings: Mapping[str, float]) -> dict[str, float]:
    """The settings as they are. Raises UsageError for a name that no rule has."""
    names = known()
    for name in settings:
        if name not in names:
            close = get_close_matches(name, names, n=1)
            raise UsageError(
                f"No rule has the setting {name}.",
                f"Did you mean {close[0]}?" if close else "docs/rules lists the settings of each rule.",
            )
    return dict(settings)


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(text)
    return value


def parsed(texts: Iterable[str]) -> dict[str, float]:
    """Settings from texts such as 'data_loader_stall.stall_share=0.1'. Raises UsageError for another form."""
    found = {}
    for text in texts:
        name, _, value = text.partition("=")
        try:
            found[name.strip()] = _finite(value)
        except ValueError:
            raise UsageError(
                f"{text!r} is not RULE.SETTING=NUMBER.", "Such as: --set data_loader_stall.stall_share=0.1"
            ) from None
    return checked(found)
