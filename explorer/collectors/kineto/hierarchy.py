"""Modules from the `Module Hierarchy` texts that profilers write for TorchScript models with `with_modules=True`.

A text names the module calls around an op, outermost first, as `NAME(CLASS)::METHOD` joined by points, for instance
`TOP(Net)::forward.layer1(Block)::forward.`; TOP is the model, SELF a call of a method of the same module. (PyTorch,
torch/csrc/jit/runtime/interpreter.cpp and its profiler tests.)
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from explorer.collectors.kineto.light import Sparse
from explorer.collectors.kineto.nesting import nearest
from explorer.model.ids import module_id

Codes = npt.NDArray[np.int32]
_KEY = b'"Module Hierarchy"'
_FILLED = re.compile(_KEY + rb'\s*:\s*"[^"]')
_TEXT = r'"Module Hierarchy"\s*:\s*"(?P<text>[^"\\]+)"'
_MARK = "modules:"
_CALL = re.compile(r"([^.():]+)\(([^()]*)\)::")


def with_hierarchies(rows: pa.Table, text: bytes) -> pa.Table:
    """The rows of a chunk, `text`, with each hierarchy before the row's call stack; see `hierarchies_of`."""
    if _KEY not in text or _FILLED.search(text) is None:
        return rows
    attributes = rows.column("attributes").combine_chunks()
    found = pc.struct_field(pc.extract_regex(attributes, _TEXT), "text")
    stacks = rows.column("call_stack").combine_chunks().cast(pa.string())
    marked = pc.binary_join_element_wise(_MARK, found, "\n", pc.fill_null(stacks, ""), "")
    place = rows.schema.get_field_index("call_stack")
    field = rows.schema.field(place)
    joined = pc.coalesce(marked, stacks)
    if isinstance(joined, pa.ChunkedArray):
        joined = joined.combine_chunks()
    return rows.set_column(place, field, joined.dictionary_encode().cast(field.type))


def hierarchies_of(texts: list[str | None]) -> tuple[list[str], list[str | None]]:
    """Hierarchies and call stacks of texts that `with_hierarchies` has joined; both empty where there is none."""
    if not any(text and text.startswith(_MARK) for text in texts):
        return [""] * len(texts), texts
    pairs = [
        text.removeprefix(_MARK).split("\n", 1) if text and text.startswith(_MARK) else ["", text or ""]
        for text in texts
    ]
    return [pair[0] for pair in pairs], [pair[1] for pair in pairs]


def parse_hierarchy(text: str) -> list[tuple[str, str]]:
    """Path and class of the modules in a text, outermost first."""
    found: list[tuple[str, str]] = []
    for name, kind in _CALL.findall(text):
        if not found:
            found.append((kind if name in ("TOP", "SELF") else name, kind))
        elif name != "SELF":
            found.append((f"{found[-1][0]}.{name}", kind))
    return found


def modules_of_texts(
    parent: Codes, own: Sparse, hierarchies: list[str]
) -> tuple[Codes, list[dict[str, Any]]]:
    """Per event a position in the module rows (from 1; 0: none), and these rows.

    `own` gives the hierarchy of events by position in `hierarchies`; events inside one have its module.
    """
    rows: dict[int, dict[str, Any]] = {}
    position: dict[int, int] = {}
    codes = np.zeros(len(hierarchies) + 1, np.int32)
    for number, text in enumerate(hierarchies):
        above: int | None = None
        for path, kind in parse_hierarchy(text):
            identity = module_id(path, kind)
            if identity not in rows:
                rows[identity] = {
                    "module_id": identity,
                    "path": path,
                    "class_name": kind,
                    "parent_id": above,
                }
                position[identity] = len(rows)
            above = identity
        if above is not None:
            codes[number] = position[above]
    module = np.zeros(len(parent), np.int32)
    if rows:
        module[own.row] = codes[own.value]
        holder = nearest(parent, module > 0, itself=True)
        module = np.where(holder >= 0, module[holder], np.int32(0))
    return module, list(rows.values())
