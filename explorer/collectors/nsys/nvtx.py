"""NVTX ranges and marks of an Nsight Systems export, with what torch.autograd.profiler.emit_nvtx writes into them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from explorer.collectors.device_work import collective_operation
from explorer.collectors.import_session import ImportSession
from explorer.collectors.nsys.clock import Clock
from explorer.collectors.nsys.host import HostRows
from explorer.collectors.nsys.names import Names
from explorer.collectors.row_buffer import attributes_json
from explorer.collectors.sqlite_file import SqliteFile
from explorer.collectors.step_name import step_of

TABLE = "NVTX_EVENTS"
_RANGES = (59, 60, 70, 71)
_MARKS = (34, 65)
_DOMAIN = 75
"""Numbers of ENUM_NSYS_EVENT_TYPE: push/pop and start/end ranges, marks, domain creation."""
_TORCH = re.compile(
    r"^(?P<name>.+?)(?:, seq = (?P<seq>\d+))?(?:, op_id = (?P<op>\d+))?(?:, sizes = (?P<sizes>\[.*?\]))?"
    r"(?:, input_op_ids = (?P<inputs>\[.*\]))?$",
    re.DOTALL,
)
_COLLECTIVE = re.compile(r"^(?:nccl|rccl)[A-Z]\w+$")
_OP_NAME = re.compile(r"^(?:[a-z]\w*::|torch::autograd::)|Backward\d*$|^[a-z]\w*_?$")


@dataclass(frozen=True, slots=True)
class TorchRange:
    """An NVTX text of emit_nvtx taken apart; `is_op` tells operators from ranges the program named itself."""

    name: str
    sequence: int | None
    sizes: str | None
    is_op: bool


def torch_range(text: str) -> TorchRange:
    """Take the text apart; texts of other origin come back whole, as no operator."""
    match = _TORCH.match(text)
    if match is None or (match["seq"] is None and match["op"] is None):
        is_op = text.startswith("aten::")
        return TorchRange(text, None, None, is_op)
    name = match["name"]
    sequence = int(match["seq"]) if match["seq"] else None
    return TorchRange(name, sequence, match["sizes"], bool(_OP_NAME.search(name)))


class NvtxRows:
    """Turns NVTX rows into ops, annotations and steps on threads."""

    def __init__(self, session: ImportSession, names: Names, clock: Clock, host: HostRows) -> None:
        self.session = session
        self.names = names
        self.clock = clock
        self.host = host
        self._forwards: dict[tuple[Any, int], tuple[int, int]] = {}
        self._backwards: list[tuple[int, tuple[Any, int], int]] = []

    def read(self, file: SqliteFile, stop_ns: int | None) -> None:
        """Read all NVTX rows. `stop_ns`: end of the session, for ranges that were still open."""
        domains = {
            row[1]: row[2] if row[2] is not None else self.names.text(row[3])
            for row in file.rows(TABLE, ("eventType", "domainId", "text", "textId"))
            if row[0] == _DOMAIN
        }
        for row in file.records(TABLE):
            self._row(row, domains, stop_ns)
        self._link_backward()

    def _row(self, row: dict[str, Any], domains: dict[Any, str], stop_ns: int | None) -> None:
        start, end, kind = row.pop("start", None), row.pop("end", None), row.get("eventType")
        text, text_id = row.pop("text", None), row.pop("textId", None)
        name = str(text) if text is not None else self.names.text(text_id)
        if row.get("jsonTextId") is not None:
            row["json"] = self.names.text(row.pop("jsonTextId"))
        if kind not in _RANGES and kind not in _MARKS:
            time = start + self.clock.base_ns if isinstance(start, int) else None
            self.session.source_row("nvtx", name, row, timestamp_ns=time)
            return
        if domains.get(row.get("domainId")):
            row["domain"] = domains[row["domainId"]]
        if kind in _MARKS:
            end = start
        elif end is None and isinstance(start, int) and stop_ns is not None and stop_ns >= start:
            end, row["unfinished"] = stop_ns, True
        found = torch_range(name)
        if found.name != name:
            row["text"] = name
        step = step_of(found.name)
        thread = row.pop("globalTid", None)
        is_call = bool(_COLLECTIVE.match(found.name)) and kind in _RANGES
        duration = end - start if isinstance(start, int) and isinstance(end, int) else None
        number = self.session.event(
            track_id=self.host.track(thread),
            category="collective"
            if is_call
            else "op"
            if found.is_op
            else "step"
            if step is not None
            else "annotation",
            name=found.name,
            start_ns=start + self.clock.base_ns if isinstance(start, int) else start,
            duration_ns=duration,
            shapes=found.sizes,
            attributes=attributes_json(row),
        )
        if number is None or duration is None or start is None:
            return
        if is_call:
            self.session.collectives.append(
                {"event_id": number, "side": "host", "operation": collective_operation(found.name)}
            )
        if step is not None and not found.is_op and kind not in _MARKS:
            first = start + self.clock.base_ns
            self.session.steps.append((step, first, first + duration))
        if found.sequence is not None and found.is_op:
            # A backward node carries the sequence number of the forward op that made it; several ops may share one,
            # and the last to start is the innermost.
            key = (thread is not None and thread >> 24, found.sequence)
            if "Backward" in found.name:
                self._backwards.append((number, key, start))
            elif key not in self._forwards or self._forwards[key][1] <= start:
                self._forwards[key] = (number, start)

    def _link_backward(self) -> None:
        for number, key, start in self._backwards:
            forward = self._forwards.get(key)
            if forward is not None and forward[1] < start:
                self.session.events.forward[number] = forward[0]
