"""Import of torch.profiler's exported memory timeline in its raw form: a JSON list of [time, action, bytes, category]."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import msgspec

from explorer.collectors.import_session import ImportSession
from explorer.collectors.options import DEFAULTS, ImportOptions
from explorer.collectors.source import Source
from explorer.collectors.source_content import read_content
from explorer.model.errors import InputError

if TYPE_CHECKING:
    from explorer.store.writer import RunWriter

NAME = "memory_timeline"
_START = re.compile(rb"^\s*\[\s*\[\s*-?\d+\s*,\s*[1-4]\s*,\s*-?\d+\s*,\s*\d+\s*\]")
_ACTIONS = {1: "alloc", 2: "alloc", 3: "recategorized", 4: "free"}
"""torch.profiler._memory_profiler.Action: PREEXISTING, CREATE, INCREMENT_VERSION, DESTROY."""
_CATEGORIES = (
    "parameter",
    "optimizer_state",
    "input",
    "temporary",
    "activation",
    "gradient",
    "autograd_detail",
    "unknown",
)
"""Numbers that MemoryProfileTimeline gives its categories."""


def recognises(source: Source) -> bool:
    """A list of lists of four integers."""
    return _START.match(source.head) is not None


def import_source(source: Source, writer: RunWriter, options: ImportOptions = DEFAULTS) -> None:
    """Read a raw memory timeline."""
    content = read_content(source)
    session = ImportSession(writer, source, NAME, options)
    rows, damage = _rows(content.data)
    damage = damage or content.damage
    if not rows:
        raise InputError(f"{source.path} holds no memory records.")
    times = [row[0] for row in rows if _whole(row) and row[0] >= 0]
    first = min(times, default=0)
    total = 0
    for row in rows:
        if not _whole(row) or row[1] not in _ACTIONS or not 0 <= row[3] < len(_CATEGORIES):
            session.quarantine({"row": row}, "no_memory_event")
            continue
        time, action, size, category = row
        total += size
        session.memory_event(
            first if time < 0 else time,
            _ACTIONS[action],
            None,
            size,
            "unknown",
            allocated_bytes=total,
            category=_CATEGORIES[category],
            attributes={"preexisting": True} if action == 1 else None,
        )
    writer.health(
        "no_addresses",
        "info",
        len(rows),
        "A memory timeline names neither addresses, lines nor its device.",
        "A memory snapshot (torch.cuda.memory._dump_snapshot) does.",
        "memory",
    )
    if damage:
        session.lost("the timeline", damage)
    session.close()


def _whole(row: Any) -> bool:
    return (
        isinstance(row, list)
        and len(row) == 4
        and all(
            isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**62 for value in row
        )
    )


def _rows(data: bytes) -> tuple[list[Any], str | None]:
    try:
        rows = msgspec.json.decode(data)
        return (rows if isinstance(rows, list) else []), None
    except (msgspec.DecodeError, RecursionError) as error:
        found = re.findall(rb"\[\s*(-?\d+)\s*,\s*(\d+)\s*,\s*(-?\d+)\s*,\s*(\d+)\s*\]", data)
        return [[int(value) for value in row] for row in found], f"its JSON is broken ({error})"
