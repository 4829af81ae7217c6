"""The allocator history of a snapshot in columns: 60 bytes a record, totals computed once the end is known."""

from __future__ import annotations

from array import array
from typing import Any, TypeGuard

import numpy as np

from explorer.collectors.call_stacks import CallStack
from explorer.collectors.import_session import ImportSession
from explorer.collectors.row_buffer import PART_ROWS, attributes_json

ACTIONS = (
    "alloc",
    "free",
    "free_requested",
    "segment_alloc",
    "segment_free",
    "segment_map",
    "segment_unmap",
    "oom",
    "snapshot",
)
_NAMES = {"free_completed": "free"}
_ALLOCATED = {"alloc": 1, "free": -1}
_RESERVED = {"segment_alloc": 1, "segment_map": 1, "segment_free": -1, "segment_unmap": -1}
MAX_CODES = 100_000
_KNOWN = {"action", "addr", "size", "time_us", "frames", "device_free", "stream"}


class History:
    """Collects trace entries of all devices in the order of the file."""

    def __init__(self, session: ImportSession) -> None:
        self._session = session
        self._time = array("q")
        self._address = array("q")
        self._size = array("q")
        self._action = array("b")
        self._device = array("h")
        self._site = array("q")
        self._stack = array("q")
        self._attributes = array("i")
        self._texts: dict[str | None, int] = {None: 0}
        self._codes: dict[tuple[tuple[str, type, Any], ...], int] = {}
        self._live: dict[int, dict[int, int]] = {}
        self.timed = 0
        self.freed_before: int = 0
        """Frees of memory that was allocated before the history begins"""

    def __len__(self) -> int:
        return len(self._time)

    def add(self, entry: dict[str, Any], device: int, chain: CallStack | None) -> None:
        """Add one entry; entries without a known action or size go to quarantine."""
        action = entry.get("action")
        name = _NAMES.get(action, action) if isinstance(action, str) else None
        size = entry.get("size", 0)
        address = entry.get("addr", entry.get("device_free"))
        time = entry.get("time_us")
        if name not in ACTIONS or not _fits(size) or not 0 <= device < 2**15:
            self._session.quarantine({**entry, "device": device}, "no_memory_event")
            return
        attributes = {
            key: value for key, value in entry.items() if key not in _KNOWN and value not in ("", None)
        }
        for key in ("stream", "device_free"):
            if key in entry:
                attributes[key] = entry[key]
        if not _fits(address):
            if address is not None:
                attributes["addr"] = str(address)[:64]
            address = -1
        signed = size
        if name == "free_requested":
            attributes["size"], signed = size, 0
        elif name in ("free", "segment_free", "segment_unmap"):
            signed = -size
        elif name in ("oom", "snapshot"):
            attributes["size"], signed = size, 0
        if _fits(time) and time < 2**52:
            self.timed += 1
            self._time.append(time * 1000)
        else:
            self._time.append(len(self._time))
        self._address.append(address)
        self._size.append(signed)
        self._action.append(ACTIONS.index(name))
        self._device.append(device)
        self._site.append(0 if chain is None else chain.site_id)
        self._stack.append(0 if chain is None else chain.stack_id)
        self._attributes.append(self._attributes_code(attributes))
        self._follow(name, device, address, size)

    def _attributes_code(self, attributes: dict[str, Any]) -> int:
        """Number of the attributes' JSON text; few combinations make up a history."""
        try:
            # Types too: True and 1 are equal keys.
            key = tuple((name, type(value), value) for name, value in attributes.items())
            known = self._codes.get(key)
        except TypeError:
            # A list or dictionary among them.
            key, known = None, None
        if known is None:
            known = self._texts.setdefault(attributes_json(attributes), len(self._texts))
            if key is not None and len(self._codes) < MAX_CODES:
                self._codes[key] = known
        return known

    def _follow(self, name: str, device: int, address: int, size: int) -> None:
        live = self._live.setdefault(device, {})
        if name == "alloc":
            live[address] = size
        elif name == "free" and live.pop(address, None) is None:
            self.freed_before += 1

    def live(self, device: int) -> dict[int, int]:
        """Address to size of what the history leaves allocated on a device."""
        return self._live.get(device, {})

    def write(self, device_type: str, final: dict[int, tuple[int, int]]) -> None:
        """Write everything as memory events.

        Args:
            device_type: cuda, npu ...
            final: device to (bytes allocated, bytes reserved) at the end of the history, as the snapshot's segments
                say; running totals are reckoned backwards from it.
        """
        count = len(self)
        if not count:
            return
        device = np.frombuffer(self._device, np.int16)
        size = np.frombuffer(self._size, np.int64)
        action = np.frombuffer(self._action, np.int8)
        time = np.frombuffer(self._time, np.int64)
        if self.timed and self.timed < count:
            # Entries without a time keep their place behind the one before them.
            numbers = np.arange(count)
            lost = time == numbers
            time = np.where(lost, 0, time)
            time = np.maximum.accumulate(time)
        allocated, reserved = np.zeros(count, np.int64), np.zeros(count, np.int64)
        known = np.zeros(count, bool)
        for number, (end_allocated, end_reserved) in final.items():
            places = np.flatnonzero(device == number)
            for totals, signs, end in (
                (allocated, _ALLOCATED, end_allocated),
                (reserved, _RESERVED, end_reserved),
            ):
                moved = np.where(
                    np.isin(action[places], [ACTIONS.index(name) for name in signs]), size[places], 0
                )
                running = np.cumsum(moved)
                totals[places] = running + (end - running[-1] if len(running) else 0)
            known[places] = True
        self._write_parts(device_type, device, size, action, time, allocated, reserved, known)

    def _write_parts(
        self, device_type: str, device: Any, size: Any, action: Any, time: Any, *totals: Any
    ) -> None:
        import pyarrow as pa

        allocated, reserved, known = totals
        count = len(self)
        first = self._session.events.next_id
        address, site, stack = (np.frombuffer(a, np.int64) for a in (self._address, self._site, self._stack))
        texts = pa.array([text or "" for text in self._texts])
        codes = np.frombuffer(self._attributes, np.int32)
        highest = int(device.max()) + 1
        devices = pa.array([f"{device_type}:{number}" for number in range(highest)])
        actions = pa.array(ACTIONS)
        for low in range(0, count, PART_ROWS):
            part = slice(low, min(low + PART_ROWS, count))
            self._session.writer.write(
                "memory_events",
                {
                    "event_id": pa.array(np.arange(part.start, part.stop) + first),
                    "timestamp_ns": pa.array(time[part]),
                    "action": pa.DictionaryArray.from_arrays(pa.array(action[part]), actions),
                    "address": pa.array(address[part], mask=address[part] < 0),
                    "size_bytes": pa.array(size[part]),
                    "allocated_bytes": pa.array(allocated[part], mask=~known[part]),
                    "reserved_bytes": pa.array(reserved[part], mask=~known[part]),
                    "device": pa.DictionaryArray.from_arrays(pa.array(device[part]), devices),
                    "site_id": pa.array(site[part], mask=site[part] == 0),
                    "stack_id": pa.array(stack[part], mask=stack[part] == 0),
                    "attributes": pa.DictionaryArray.from_arrays(
                        pa.array(codes[part], mask=codes[part] == 0), texts
                    ),
                },
            )
        self._session.counts["source_total"] += count
        self._session.memory.count += count


def _fits(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**62
