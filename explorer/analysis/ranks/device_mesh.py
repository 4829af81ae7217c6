"""The mesh of ranks that a job's process groups form: one dimension per kind of parallelism.

Groups of one description and size that share no rank are the lines of one dimension; what it is for is read from its
description (DeviceMesh names a group mesh_tp, Megatron TENSOR_MODEL_PARALLEL_GROUP).
"""

from __future__ import annotations

import itertools
import json
import re
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from explorer.analysis.ranks.query import query

if TYPE_CHECKING:
    from explorer.analysis.engine import Engine

_KINDS = (
    ("expert", r"ep\d*|expert"),
    ("tensor", r"tp\d*|tensor|mp\d*"),
    ("pipeline", r"pp\d*|pipe|pipeline|stage"),
    ("context", r"cp\d*|context|sp\d*|seq|sequence"),
    ("data", r"dp\d*|data|fsdp|ddp|replicate|shard|hsdp"),
)
"""Kinds by the words of a description; the first that fits counts (an expert group may name the tensors it splits)."""


@dataclass(frozen=True, slots=True)
class Dimension:
    """`kind` is tensor, data, pipeline, expert, context, world (all ranks) or other; `stride` the distance of neighbours
    in a group (None where it varies); `groups` the ranks of each; `calls` the communication calls of all of them."""

    name: str
    kind: str
    size: int
    stride: int | None
    groups: tuple[tuple[int, ...], ...]
    calls: int

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "groups": [list(group) for group in self.groups]}


def dimensions(engine: Engine) -> list[Dimension]:
    """Dimensions, the one with the largest stride first (the outermost of the mesh), all ranks together last."""
    ranks = len(engine.reader.ranks)
    found: dict[tuple[str, int], tuple[set[tuple[int, ...]], int]] = {}
    for row in engine.sql(query("group_lists")).rows():
        members = _members(row["ranks"])
        if not members:
            continue
        key = (row["description"] or row["group_name"], len(members))
        groups, calls = found.get(key, (set(), 0))
        found[key] = (groups | {members}, calls + row["calls"])
    result = []
    for (name, size), (groups, calls) in found.items():
        ordered = tuple(sorted(groups))
        kind = "world" if size >= ranks and len(ordered) == 1 and kind_of(name) == "other" else kind_of(name)
        result.append(Dimension(_short(name), kind, size, _stride(ordered), ordered, calls))
    return sorted(result, key=lambda one: (one.kind == "world", -(one.stride or 0), one.name))


def kind_of(description: str) -> str:
    """What a group of this description is for."""
    words = [word for word in re.split(r"[^a-z0-9]+", description.lower()) if word]
    return next(
        (kind for kind, pattern in _KINDS if any(re.fullmatch(pattern, word) for word in words)), "other"
    )


def mesh_text(found: list[Dimension]) -> str:
    """The mesh in words, outermost dimension first: `dp 2 x tp 4`. Empty where all groups hold all ranks."""
    inner = [one for one in found if one.kind != "world"]
    return " x ".join(f"{one.name} {one.size}" for one in inner if one.size > 1)


def _members(text: str) -> tuple[int, ...]:
    try:
        value = json.loads(text)
    except ValueError:
        return ()
    return (
        tuple(sorted(value)) if isinstance(value, list) and all(isinstance(one, int) for one in value) else ()
    )


def _stride(groups: tuple[tuple[int, ...], ...]) -> int | None:
    steps = {after - before for group in groups for before, after in itertools.pairwise(group)}
    return steps.pop() if len(steps) == 1 else None


def _short(name: str) -> str:
    return name.removeprefix("mesh_") or name
