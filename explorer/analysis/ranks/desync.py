"""Ranks that fell out of step: who did not arrive at a call that others wait in, and calls that do not agree.

Rests on flight recorder dumps: they end where a rank stood, while a profile ends when its recording did.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from explorer.analysis.ranks.query import query

if TYPE_CHECKING:
    from explorer.analysis.engine import Engine

FORMAT = "flight_recorder"


@dataclass(frozen=True, slots=True)
class Desync:
    """`kind` is absent (ranks `absent` never started call `sequence`, in which `arrived` wait) or mismatch (the ranks of
    one call ask for different operations: `operations` by rank). `unknown`: ranks of the group without a dump. The line is
    that of a rank that arrived."""

    kind: str
    group_name: str
    description: str | None
    sequence: int
    operations: dict[int, str]
    arrived: tuple[int, ...]
    absent: tuple[int, ...]
    unknown: tuple[int, ...]
    file: str | None
    line: int | None
    code: str | None

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def text(self) -> str:
        """One sentence."""
        group = f"group {self.group_name}" + (f" ({self.description})" if self.description else "")
        place = f", {self.file}:{self.line}" if self.file else ""
        if self.kind == "mismatch":
            asked = ", ".join(f"rank {rank} {name}" for rank, name in sorted(self.operations.items()))
            return f"Call {self.sequence} of {group} is not the same on all ranks: {asked}{place}."
        operation = next(iter(self.operations.values()), "call")
        return (
            f"{_ranks(self.absent)} did not arrive at call {self.sequence} of {group}, in which {_ranks(self.arrived)}"
            f" wait: {operation}{place}."
        )


def desynchronised(engine: Engine) -> list[Desync]:
    """The first disagreement of each group and the first call that not all of its ranks started. Empty for a run that was
    not made from flight recorder dumps."""
    manifests = engine.reader.manifests.values()
    if not any(one.inputs and one.inputs[0].get("format") == FORMAT for one in manifests):
        return []
    groups: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for row in engine.sql(query("recorded_calls")).rows():
        groups.setdefault((row["group_name"], row["members"]), []).append(row)
    present = set(engine.reader.ranks)
    found = []
    for (name, _), rows in groups.items():
        members = (
            set(json.loads(rows[0]["group_ranks"]))
            if rows[0]["group_ranks"]
            else {row["rank"] for row in rows}
        )
        first: dict[int, int] = {}
        last = dict.fromkeys(sorted(members & present), 0)
        calls: dict[int, list[dict[str, Any]]] = {}
        for row in rows:
            first.setdefault(row["rank"], row["sequence"])
            last[row["rank"]] = max(last.get(row["rank"], 0), row["sequence"])
            calls.setdefault(row["sequence"], []).append(row)
        # The recorder keeps the newest calls only: before this number some ranks have forgotten theirs.
        known_from = max(first.values())
        unknown = tuple(sorted(members - present))
        for sequence in sorted(number for number in calls if number >= known_from):
            asked = {row["rank"]: row["operation"] for row in calls[sequence]}
            if len(set(asked.values())) > 1:
                found.append(_of("mismatch", name, sequence, calls[sequence], (), unknown))
                break
        behind = min(last.values())
        if behind < max(last.values()) and behind + 1 in calls:
            absent = tuple(rank for rank, number in last.items() if number <= behind)
            found.append(_of("absent", name, behind + 1, calls[behind + 1], absent, unknown))
    return found


def _of(
    kind: str,
    name: str,
    sequence: int,
    rows: list[dict[str, Any]],
    absent: tuple[int, ...],
    unknown: tuple[int, ...],
) -> Desync:
    one = next((row for row in rows if row["file"]), rows[0])
    return Desync(
        kind,
        name,
        one["description"],
        sequence,
        {row["rank"]: row["operation"] for row in rows},
        tuple(row["rank"] for row in rows),
        absent,
        unknown,
        one["file"],
        one["line"],
        one["code"],
    )


def _ranks(ranks: tuple[int, ...]) -> str:
    shown = ", ".join(map(str, ranks[:8])) + (f" and {len(ranks) - 8} more" if len(ranks) > 8 else "")
    return f"{'rank' if len(ranks) == 1 else 'ranks'} {shown}"
