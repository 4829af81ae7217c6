"""Rules that were not checked, by the input that the run lacks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from explorer.analysis.rule import NEEDS
from explorer.model.finding import NotChecked

_DEVICE = "device"
_BELOW_DEVICE = ("kernels", "neuron", "neuron_system")
"""Inputs that only a run with a device can hold: without one, the device is what is missing."""

_WANTED = {
    "events": ("any event", "none in this run"),
    "ops": ("framework ops", "none in this run"),
    _DEVICE: ("a device", "none in this run"),
    "kernels": ("kernels of a device", "none in this run"),
    "host_states": ("the lines that threads execute", "none in this run; record with lines on"),
    "shapes": ("input shapes", "none in this run; record with --shapes all"),
    "dtypes": ("types of inputs", "none in this run; record with --shapes all"),
    "io": ("file input and output", "none in this run, as only our own capture records it"),
    "gc": ("garbage collections", "none in this run, as only our own capture records them"),
    "data": ("loading of data", "none in this run"),
    "memory_events": ("allocations", "none in this run; record with --memory"),
    "collectives": ("communication", "none in this run"),
    "counters": ("telemetry", "none in this run"),
    "ranks": ("several ranks", "this run holds one"),
    "neuron": ("a Neuron device profile", "none in this run"),
    "neuron_system": ("a Neuron system profile", "none in this run"),
}
"""By the keys of `NEEDS`: what rules need, and how the run stands to it."""


@dataclass(frozen=True, slots=True)
class Unchecked:
    """Rules that lack the same input. `sentence` says it with their number."""

    sentence: str
    rules: tuple[str, ...]


def unchecked(items: Iterable[NotChecked]) -> tuple[Unchecked, ...]:
    """The rules in groups, those of one missing input together, in the order of each group's first rule.

    Where the run holds no device, what asks for kernels or a profile of one asks for a device too. A reason of its own makes a
    group of its own.
    """
    items = list(items)
    without_device = any(_need(item.reason) == _DEVICE for item in items)
    groups: dict[str, list[str]] = {}
    for item in items:
        need = _need(item.reason)
        if without_device and need in _BELOW_DEVICE:
            need = _DEVICE
        groups.setdefault(need or item.reason, []).append(item.rule)
    return tuple(Unchecked(_sentence(key, len(rules)), tuple(rules)) for key, rules in groups.items())


def _need(reason: str) -> str:
    """The key of `NEEDS` whose reason this is, with or without more behind a colon; else empty."""
    return next((key for key, text in NEEDS.items() if reason == text or reason.startswith(f"{text}:")), "")


def _sentence(key: str, count: int) -> str:
    rules = f"{count} rule{'' if count == 1 else 's'}"
    if key not in _WANTED:
        return f"{rules}: {key}"
    what, how = _WANTED[key]
    return f"{rules} need{'s' if count == 1 else ''} {what}: {how}"
