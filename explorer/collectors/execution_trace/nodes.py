"""Nodes of a PyTorch execution trace, the same for every version of its schema.

Versions 1.0.1 to 1.0.x keep ids and shapes beside the name; 1.1.x moved inputs and outputs into objects and the rest into a list
of attributes (torch/csrc/profiler/standalone/execution_trace_observer.cpp). A tensor is written as [tensor id, storage id,
offset, elements, bytes each, device].
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

TensorKey = tuple[int, int]
"""Storage id and tensor id"""


@dataclass(slots=True)
class Node:
    """One node. `rest` holds everything that has no field of its own."""

    id: int
    name: str
    record_function_id: int | None
    parent: int | None
    inputs: list[TensorKey]
    outputs: list[TensorKey]
    rest: dict[str, Any]


def parse_node(row: dict[str, Any]) -> Node | None:
    """A node of any schema version; None when it has no id."""
    if not isinstance(row.get("id"), int):
        return None
    attributes = {
        str(item.get("name")): item.get("value") for item in row.get("attrs") or () if isinstance(item, dict)
    }
    record = row.get("rf_id", attributes.get("rf_id"))
    parent = row.get("parent", row.get("ctrl_deps"))
    inputs, outputs = row.get("inputs"), row.get("outputs")
    return Node(
        row["id"],
        str(row.get("name", "")),
        record if isinstance(record, int) else None,
        parent if isinstance(parent, int) else None,
        list(_tensors(_part(inputs, "values"))),
        list(_tensors(_part(outputs, "values"))),
        {key: value for key, value in row.items() if key not in ("id", "name", "attrs")} | attributes,
    )


def _part(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, dict) else value


def _tensors(value: Any, depth: int = 0) -> Iterator[TensorKey]:
    if not isinstance(value, list) or depth > 4:
        return
    if (
        len(value) in (6, 7)
        and all(isinstance(item, int) and not isinstance(item, bool) for item in value[:5])
        and isinstance(value[5], str)
    ):
        yield value[1], value[0]
        return
    for item in value:
        yield from _tensors(item, depth + 1)
