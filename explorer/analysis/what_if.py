"""What-if: predict the step time with something faster, gone, or overlapped, by replaying the dependency graph."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from explorer.analysis.critical_path.rank_events import ALWAYS, load, row_numbers
from explorer.analysis.critical_path.replay import Change, Floats, Prediction, Replay
from explorer.analysis.critical_path.selection import WAYS, Selection, select, select_events, select_sites
from explorer.model.errors import InputError, UsageError

if TYPE_CHECKING:
    from explorer.analysis.engine import Engine

SCHEMA = "neuron-explorer/what-if/1"

REMOVABLE: dict[str, str] = {
    "sync": "host calls that wait for a device no longer wait",
    "data": "fetching batches takes no time",
    "gc": "garbage collection takes no time",
    "io": "file input and output take no time",
    "compile": "compilation takes no time",
    "collective": "communication takes no time",
    "copy": "copies take no time",
}

OVERLAPPABLE: dict[str, str] = {
    "copies": "copies no longer hold up their stream",
    "collectives": "communication no longer holds up its stream",
}

_OVERLAP_CATEGORY = {"copies": "copy", "collectives": "collective"}


@dataclass(frozen=True, slots=True)
class Edit:
    """One change. `action` is speedup, remove or overlap; `way` and `value` select (see `selection.WAYS`)."""

    action: str
    way: str
    value: str
    factor: float = 0.0

    def text(self) -> str:
        """As written on the command line."""
        if self.action == "speedup":
            return f"speedup {self.way}={self.value}:{self.factor:g}x"
        return f"{self.action} {self.way}={self.value}" if self.way else f"{self.action} {self.value}"


@dataclass(frozen=True, slots=True)
class WhatIf:
    """A prediction. Step times are medians of the complete steps of the slowest rank, in ns."""

    edits: tuple[str, ...]
    rank: int
    steps: int
    step_before_ns: int
    step_after_ns: int
    wall_before_ns: int
    wall_after_ns: int

    @property
    def saving_ns(self) -> int:
        return self.step_before_ns - self.step_after_ns

    def to_dict(self) -> dict[str, Any]:
        """The JSON document of `what-if --json`."""
        share = self.saving_ns / self.step_before_ns if self.step_before_ns else 0.0
        return {
            "schema": SCHEMA,
            "edits": list(self.edits),
            "rank": self.rank,
            "steps": self.steps,
            "step_before_ns": self.step_before_ns,
            "step_after_ns": self.step_after_ns,
            "saving_ns": self.saving_ns,
            "saving_share": round(share, 6),
            "wall_before_ns": self.wall_before_ns,
            "wall_after_ns": self.wall_after_ns,
        }

    def to_json(self, indent: int | None = None) -> str:
        """`to_dict()` as JSON text."""
        return json.dumps(self.to_dict(), indent=indent)


_SPEEDUP = re.compile(r"^(?P<way>\w+)=(?P<value>.+):(?P<factor>\d+(?:\.\d+)?)x$")


def parse_speedup(text: str) -> Edit:
    """`line=model.py:57:2x`, `op=aten::mm:1.5x`, `category=collective:2x`. Raises UsageError."""
    match = _SPEEDUP.match(text)
    if not match or match["way"] not in WAYS:
        raise UsageError(
            f"'{text}' is not a speed-up.",
            f"Write WAY=VALUE:FACTORx, such as line=model.py:57:2x; ways: {', '.join(WAYS)}.",
        )
    factor = float(match["factor"])
    if math.isinf(factor):
        raise UsageError(
            f"'{text[:40]}…': the factor is too large.", "Use --remove for something that is gone."
        )
    if factor <= 0:
        raise UsageError(f"'{text}': a factor must be above 0.", "Use --remove for something that is gone.")
    return Edit("speedup", match["way"], match["value"], factor)


def parse_remove(text: str) -> Edit:
    """`sync`, `data`, ..., or `line=train.py:57`, `op=...`: a way and a value. Raises UsageError."""
    way, equals, value = text.partition("=")
    if equals and (way in WAYS or way == "sync"):
        return Edit("remove", way, value)
    if not equals and text in REMOVABLE:
        return Edit("remove", "", text)
    raise UsageError(f"Cannot remove '{text}'.", f"Use one of {', '.join(REMOVABLE)}, or WAY=VALUE.")


def parse_overlap(text: str) -> Edit:
    """`copies` or `collectives`. Raises UsageError."""
    if text not in OVERLAPPABLE:
        raise UsageError(f"Cannot overlap '{text}'.", f"Use one of {', '.join(OVERLAPPABLE)}.")
    return Edit("overlap", "", text)


class Replays:
    """The replays of a run, one per rank, loaded once and used for many predictions."""

    def __init__(self, engine: Engine, windows: Mapping[int, tuple[int, int]] | None = None) -> None:
        """Args: windows: by rank what stretch of time to replay (start and end in ns); else all of it."""
        self.engine = engine
        self._windows = windows or {}
        self._ranks: dict[int, tuple[Replay, Prediction] | None] = {}
        self._begun: dict[int, Future[tuple[Replay, Prediction] | None]] = {}

    def begin(self, rank: int, executor: Executor) -> None:
        """Load a rank in the background: `of` waits for it."""
        self._begun[rank] = executor.submit(self._load, rank)

    def of(self, rank: int) -> tuple[Replay, Prediction] | None:
        """The replay of a rank with its unchanged prediction; None when the rank has no events."""
        if rank not in self._ranks:
            begun = self._begun.pop(rank, None)
            self._ranks[rank] = begun.result() if begun else self._load(rank)
        return self._ranks[rank]

    def _load(self, rank: int) -> tuple[Replay, Prediction] | None:
        events = load(self.engine, rank, self._windows.get(rank, ALWAYS))
        replay = Replay(events) if events is not None and events.finish > events.begin else None
        return None if replay is None else (replay, replay.run(replay.unchanged()))

    def predict(self, edits: Sequence[Edit], ranks: Sequence[int] | None = None) -> WhatIf:
        """Predict with edits made on some ranks (None: on every one); of them the slowest before decides.

        Raises InputError when the run has no events, UsageError for an edit that selects nothing on any rank.
        """
        selected = [False] * len(edits)
        outcomes: list[tuple[int, Replay, Prediction, Prediction]] = []
        for rank in self.engine.reader.ranks if ranks is None else ranks:
            if (known := self.of(rank)) is None:
                continue
            replay, before = known
            change = replay.unchanged()
            for number, edit in enumerate(edits):
                selected[number] |= apply(self.engine, replay, change, edit)
            outcomes.append((rank, replay, before, replay.run(change)))
        if not outcomes:
            raise InputError("The run holds no events to replay.")
        for edit, found in zip(edits, selected):
            if not found:
                raise UsageError(
                    f"'{edit.text()}' selects nothing in this run.",
                    "See `lines`, `ops` and `kernels` for what it holds.",
                )
        rank, replay, before, after = max(outcomes, key=lambda outcome: _median_step(outcome[1], outcome[2]))
        return summarise(tuple(edit.text() for edit in edits), replay, before, after)


def summarise(
    edits: tuple[str, ...],
    replay: Replay,
    before: Prediction,
    after: Prediction,
    changed: Sequence[int] = (),
) -> WhatIf:
    """A prediction of one rank as a WhatIf. `changed`: the numbers of the steps that were changed; empty: all.

    Where steps differ, the median step after is not the median step before made shorter: it may be another step. So the
    median step is shortened by what the typical step loses of its own length.

    A device that lags behind its host bounds the saving: the mean step cannot shrink by more than the whole span does.
    """
    steps = max(1, len(replay.events.steps.number))
    chosen = _chosen(replay, changed)
    step_before = _median_step(replay, before, chosen)
    step_after = round(step_before * (1.0 - _typical_share(before, after, chosen)))
    if after.wall_ns > int(after.step_ns.sum()) + 1 and len(after.step_ns):
        step_after = max(
            step_after, step_before - max(0, before.wall_ns - after.wall_ns) // (len(changed) or steps)
        )
    return WhatIf(edits, replay.events.rank, steps, step_before, step_after, before.wall_ns, after.wall_ns)


def _chosen(replay: Replay, numbers: Sequence[int] = ()) -> NDArray[np.bool_]:
    """Which steps count: of those with these numbers (empty: of all) the complete ones, or all where none is complete."""
    steps = replay.events.steps
    listed = np.isin(steps.number, np.array(numbers)) if len(numbers) else np.ones(len(steps.number), bool)
    complete = listed & steps.complete
    return complete if complete.any() else listed


def _typical_share(before: Prediction, after: Prediction, chosen: NDArray[np.bool_]) -> float:
    """Median of what each step loses, as a part of its length; a rank without steps is one step."""
    if not chosen.any():
        return 1.0 - after.wall_ns / max(1, before.wall_ns)
    return float(np.median(1.0 - after.step_ns[chosen] / np.maximum(1, before.step_ns[chosen])))


def _median_step(replay: Replay, prediction: Prediction, chosen: NDArray[np.bool_] | None = None) -> int:
    """Median complete step; a rank without steps is one step."""
    chosen = _chosen(replay) if chosen is None else chosen
    return int(np.median(prediction.step_ns[chosen])) if chosen.any() else prediction.wall_ns


def apply(engine: Engine, replay: Replay, change: Change, edit: Edit) -> bool:
    """Make an edit on one rank. Returns whether it selected anything there."""
    events = replay.events
    if edit.action == "overlap":
        mask = events.category == _OVERLAP_CATEGORY[edit.value]
        change.own_stream |= mask
        return bool(mask.any())
    if edit.action == "remove" and edit.way in ("", "sync") and (edit.value == "sync" or edit.way == "sync"):
        waiting = np.zeros(len(events), bool)
        waiting[events.sync_call] = True
        if edit.way == "sync":
            waiting &= select(engine, replay, "line", edit.value).event > 0
        change.no_wait |= waiting
        return bool(waiting.any())
    way, value = (edit.way, edit.value) if edit.way else ("category", edit.value)
    selection = select(engine, replay, way, value)
    scale(change, selection, 1.0 / edit.factor if edit.action == "speedup" else 0.0)
    return not selection.is_empty


def scale(change: Change, selection: Selection, factor: float) -> None:
    """Multiply the selected share of each duration by `factor`."""

    def scaled(current: Floats, share: Floats) -> Floats:
        # Where nothing is selected, most often among millions of device events, there is nothing to multiply.
        return current if not share.any() else current * (1.0 - share * (1.0 - factor))

    change.lane = scaled(change.lane, selection.lane)
    change.device = scaled(change.device, selection.event)


def without(
    replays: Replays,
    rank: int,
    *,
    events: Sequence[int] = (),
    sites: Sequence[int] = (),
    waits: Sequence[int] = (),
    factor: float = 0.0,
) -> WhatIf | None:
    """For rules: one rank replayed with some of its work changed. None when the rank has no events.

    Args:
        events: event ids whose time, with all they enclose and enqueue, is scaled by `factor`.
        sites: source lines, likewise.
        waits: event ids of waiting calls that no longer wait.
        factor: 0 is gone, 0.5 is twice as fast.
    """
    if (known := replays.of(rank)) is None:
        return None
    replay, before = known
    change = replay.unchanged()
    if len(events):
        scale(change, select_events(replay, np.asarray(events, np.int64)), factor)
    if len(sites):
        scale(change, select_sites(replays.engine, replay, np.asarray(sites, np.int64)), factor)
    if len(waits):
        index = row_numbers(replay.events.event_id, np.asarray(waits, np.int64))
        change.no_wait[index[index >= 0]] = True
    return summarise((), replay, before, replay.run(change))
