"""Which pipeline schedule the ranks of a job ran, read from the order of their sends and receives in a step.

A stage works on a microbatch between receiving it and sending the result on; activations flow from the first stage to the
last, gradients back. Bubble shares: (p-1)/(m+p-1) for GPipe (Huang et al. 2019) and for 1F1B, (p-1)/(v m+p-1) with v
chunks per rank (Narayanan et al. 2021).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from explorer.analysis.ranks.query import query

if TYPE_CHECKING:
    from explorer.analysis.engine import Engine

GPIPE, ONE_F_ONE_B = "GPipe", "1F1B"
INTERLEAVED, LOOPED = "interleaved 1F1B", "looped breadth-first"

Message = tuple[str, int]
"""('send' or 'recv', other rank), in the order of a rank's step."""


@dataclass(frozen=True, slots=True)
class Pipeline:
    """A pipeline over `ranks`, first stage first. `chunks` is the number of stages per rank; `least_bubble` the share of a
    step that its schedule must leave idle; `steps` the number of steps in which it was seen."""

    ranks: tuple[int, ...]
    schedule: str
    microbatches: int
    chunks: int
    least_bubble: float
    steps: int

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "ranks": list(self.ranks)}


def pipelines(engine: Engine) -> list[Pipeline]:
    """Every pipeline whose schedule is one of the known ones, the most common form of each. Empty without any."""
    steps: dict[tuple[str, int, int], dict[int, list[Message]]] = {}
    for row in engine.sql(query("stage_messages")).rows():
        ranks = steps.setdefault((row["group_name"], row["members"], row["step"]), {})
        ranks.setdefault(row["rank"], []).append((row["operation"], row["peer"]))
    seen: dict[tuple[tuple[int, ...], str, int, int], int] = {}
    for messages in steps.values():
        for order in stage_orders(messages):
            if (found := recognise({rank: messages[rank] for rank in order}, order)) is not None:
                key = (order, *found)
                seen[key] = seen.get(key, 0) + 1
    result: dict[tuple[int, ...], Pipeline] = {}
    for (order, schedule, microbatches, chunks), count in sorted(seen.items(), key=lambda item: -item[1]):
        idle = len(order) - 1
        result.setdefault(
            order,
            Pipeline(order, schedule, microbatches, chunks, idle / (chunks * microbatches + idle), count),
        )
    return [result[order] for order in sorted(result)]


def stage_orders(messages: dict[int, list[Message]]) -> list[tuple[int, ...]]:
    """Ranks of each pipeline in order of their stages: each begins with a rank that sends before it receives, and follows
    first sends."""
    orders = []
    for rank in sorted(messages):
        if messages[rank][0][0] != "send":
            continue
        order = [rank]
        while True:
            # A middle stage first receives from the one before; the first send of all others goes forward.
            onward = next((peer for kind, peer in messages[order[-1]] if kind == "send"), None)
            if onward is None or onward in order or onward not in messages:
                break
            order.append(onward)
        if len(order) > 1:
            orders.append(tuple(order))
    return orders


def recognise(messages: dict[int, list[Message]], order: tuple[int, ...]) -> tuple[str, int, int] | None:
    """(schedule, microbatches, chunks) of one step, or None where it is none of the known schedules."""
    first, second, last = order[0], order[1], order[-1]
    sent = messages[first].count(("send", second))
    wrapped = messages[last].count(("send", first)) if len(order) > 2 else 0
    microbatches = sent - wrapped
    if microbatches <= 0 or sent % microbatches or messages[first].count(("recv", second)) != sent:
        return None
    before = order[-2]
    # On the last stage a microbatch comes from the stage before, and its gradient goes back there.
    work = [kind for kind, peer in messages[last] if peer == before]
    if work.count("recv") != sent or work.count("send") != sent:
        return None
    apart = "send" not in work[:sent]
    if wrapped:
        return (LOOPED if apart else INTERLEAVED), microbatches, sent // microbatches
    if apart:
        # With one microbatch both schedules are the same.
        return GPIPE, microbatches, 1
    return (ONE_F_ONE_B, microbatches, 1) if work == ["recv", "send"] * sent else None
