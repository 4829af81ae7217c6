"""What a rule is: its settings with their sources, what it needs from a run, and the drafts it hands to `findings`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from explorer.model.finding import Evidence, NotChecked, Saving

if TYPE_CHECKING:
    from explorer.analysis.rule_context import RuleContext

NEEDS: dict[str, str] = {
    "events": "the run holds no events",
    "ops": "the run holds no framework ops",
    "device": "the run holds no device events",
    "kernels": "the run holds no device kernels",
    "host_states": "the run does not say which line each thread was executing (record it with lines on)",
    "shapes": "the run holds no op shapes (record it with record_shapes)",
    "dtypes": "the run holds no op dtypes (record it with record_shapes)",
    "io": "the run holds no file input or output events (only our own capture records them)",
    "gc": "the run holds no garbage-collector events (only our own capture records them)",
    "data": "the run holds no data-loading events",
    "memory_events": "the run holds no allocator events (record it with profile_memory)",
    "collectives": "the run holds no communication",
    "counters": "the run holds no telemetry",
    "ranks": "the run holds one rank only",
    "neuron": "the run holds no Neuron device profile",
    "neuron_system": "the run holds no Neuron system profile",
}
"""What a rule may need, with the reason given when the run lacks it."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A threshold: `default` in the unit its name ends with, and `source`: where the number comes from."""

    name: str
    default: float
    doc: str
    source: str


@dataclass(frozen=True, slots=True)
class Draft:
    """A rule's finding before it is corrected for profiling cost, deduplicated and ranked.

    `line_times_ns` are the responsible lines, worst first, with recorded time per step (empty: no line is known).
    `saving` is per step in recorded time. `affected` is SQL for the time that would shrink, as rows of
    (start_ns, duration_ns) and, where it is events, event_id: it corrects the saving, finds overlaps between
    findings, and tells a replay what to change; `remaining_share` is the part of that time left after the advice. `side` is
    host or device of the scope's rank, or ranks for what lies between ranks; `ranks` are those it is about (empty: the scope's).

    `notice` is a severity for what speaks of no time (an error, a warning, a doubt): such a draft has the saving
    Saving(0, 0, 0, "none") and no `affected`, and is said whatever it saves: before the others, or after them where it is low.
    """

    title: str
    line_times_ns: Mapping[int, int]
    saving: Saving
    evidence: Sequence[Evidence]
    advice: str
    affected: str
    remaining_share: float = 0.0
    side: str = "host"
    confidence: str = "high"
    caveats: Sequence[str] = ()
    key: str = ""
    notice: str = ""
    ranks: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class Rule:
    """One bottleneck.

    `specificity` orders causes over symptoms where two findings claim the same time: 3 names the very mistake,
    2 a pattern, 1 a general condition, 0 what sums all of them up. `needs` are keys of NEEDS; the rule runs only when the run has them all.
    """

    name: str
    title: str
    specificity: int
    needs: tuple[str, ...]
    check: Callable[[RuleContext], Sequence[Draft] | NotChecked]
    settings: tuple[Setting, ...] = field(default=())
