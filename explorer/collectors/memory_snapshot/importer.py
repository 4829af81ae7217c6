"""Import of PyTorch memory snapshots (torch.cuda.memory._dump_snapshot, torch_npu's form of it): a pickle of plain data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from explorer.collectors.call_stacks import CallStack, Frame
from explorer.collectors.import_session import ImportSession
from explorer.collectors.memory_snapshot.history import History
from explorer.collectors.memory_snapshot.plain_pickle import PickleBroken, PickleRefused, PlainPickle
from explorer.collectors.options import DEFAULTS, ImportOptions
from explorer.collectors.source import Damaged, Source
from explorer.model.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from explorer.store.writer import RunWriter

NAME = "memory_snapshot"
_LIVE = "active_allocated"


def recognises(source: Source) -> bool:
    """Any pickle of protocol 2 or later, or an older one that names a snapshot's keys."""
    head = source.head
    if head[:1] == b"\x80":
        return len(head) > 1 and 2 <= head[1] <= 5
    return head[:1] in (b"(", b"}") and b"device_traces" in head and b"segments" in head


def import_source(source: Source, writer: RunWriter, options: ImportOptions = DEFAULTS) -> None:
    """Read a snapshot. Raises InputError when it holds anything but plain data, or is no snapshot."""
    session = ImportSession(writer, source, NAME, options)
    reading = _Snapshot(session, source)
    document = reading.load()
    reading.keep_segments(document)
    reading.keep_rest(document)
    reading.finish()
    session.close()


class _Snapshot:
    def __init__(self, session: ImportSession, source: Source) -> None:
        self.session = session
        self.source = source
        self.history = History(session)
        self._frames: dict[int, tuple[Any, CallStack | None]] = {}
        self._final: dict[int, tuple[int, int]] = {}
        self._devices: set[int] = set()
        self._npu = "npu" in source.name.lower()
        self._live_blocks: dict[int, set[int]] = {}

    def load(self) -> dict[str, Any]:
        pickle = PlainPickle(self._blocks(), self._take)
        try:
            document = pickle.load()
        except PickleRefused as error:
            raise InputError(
                f"{self.source.path} is a pickle that would run code ({error}); nothing was run.",
                "A memory snapshot holds plain data only: do not load this file with anything else either.",
            ) from error
        except PickleBroken as error:
            document = self._salvage(pickle)
            if not document and not len(self.history):
                raise InputError(
                    f"{self.source.path} cannot be read as a pickle: {error}.", "Dump the snapshot again."
                ) from error
            self.session.lost("the snapshot", str(error), offset=error.offset)
        if isinstance(document, list):
            # torch.cuda.memory_snapshot() gives the segments alone.
            document = {"segments": document}
        if not isinstance(document, dict) or not (
            isinstance(document.get("segments"), list) or "device_traces" in document or len(self.history)
        ):
            raise InputError(
                f"{self.source.path} is a pickle, but no memory snapshot (it has no segments).",
                "Make one with torch.cuda.memory._dump_snapshot(path).",
            )
        return document

    def _blocks(self) -> Iterator[bytes]:
        try:
            yield from self.source.blocks()
        except Damaged as error:
            self.session.lost("the file", str(error))

    def _salvage(self, pickle: PlainPickle) -> dict[str, Any]:
        """What a cut-off pickle had built: finished values of the root dictionary, items of open lists."""
        stacks = [*pickle.outer, pickle.stack]
        for level, items in enumerate(stacks):
            entries = [item for item in items if isinstance(item, dict) and "action" in item]
            device = self._device_of(stacks[level - 1], stacks[: level - 1]) if entries and level else 0
            for entry in entries:
                self._entry(entry, device)
        document: dict[str, Any] = {}
        for stack in stacks:
            for place, key in enumerate(stack[:-1]):
                if (
                    key in ("segments", "device_traces", "allocator_settings")
                    if isinstance(key, str)
                    else False
                ):
                    document.setdefault(key, stack[place + 1])
        return document

    def _take(self, target: list[Any], items: list[Any], stack: list[Any], outer: list[list[Any]]) -> bool:
        """Take trace entries as they are finished, so that the history never stands in memory as objects."""
        first = items[0] if items else None
        if not isinstance(first, dict) or "action" not in first:
            return False
        device = self._device_of(stack, outer)
        for entry in items:
            if isinstance(entry, dict):
                self._entry(entry, device)
                # Its place in the pickle's memo stays; its content goes.
                entry.clear()
            else:
                self.session.quarantine({"entry": entry}, "no_memory_event")
        return True

    @staticmethod
    def _device_of(stack: list[Any], outer: list[list[Any]]) -> int:
        """Index of the list being filled (top of the stack) in the list of devices around it."""
        if len(stack) >= 3 and stack[-3] == "device_traces" and isinstance(stack[-2], list):
            return len(stack[-2])
        around = outer[-1][-1] if outer and outer[-1] else None
        before = len(around) if isinstance(around, list) else 0
        return before + len(stack) - 1

    def _entry(self, entry: dict[str, Any], device: int) -> None:
        self._devices.add(device)
        self.history.add(entry, device, self._chain(entry.get("frames")))

    def _chain(self, frames: Any) -> CallStack | None:
        if not isinstance(frames, list | tuple) or not frames:
            return None
        # Entries share one list of frames; the list is kept so that its id stays its own.
        known = self._frames.get(id(frames))
        if known is None:
            known = self._frames[id(frames)] = (
                frames,
                self.session.stacks.stack(self._python_frames(frames)),
            )
        return known[1]

    def _python_frames(self, frames: Any) -> Iterator[Frame]:
        for frame in frames:
            if not isinstance(frame, dict):
                continue
            file, line = str(frame.get("filename", "")), frame.get("line", 0)
            if "torch_npu" in file:
                self._npu = True
            if file not in ("", "??"):
                yield Frame(file, line if isinstance(line, int) else 0, str(frame.get("name", "")))

    def keep_segments(self, document: dict[str, Any]) -> None:
        """Segments and their blocks as source rows; their sums as the end of the running totals."""
        segments = document.pop("segments", None)
        for segment in segments if isinstance(segments, list) else []:
            if not isinstance(segment, dict):
                self.session.quarantine({"segment": segment}, "no_segment")
                continue
            device = segment.get("device")
            device = device if isinstance(device, int) and 0 <= device < 2**15 else 0
            blocks = segment.pop("blocks", None)
            self._devices.add(device)
            allocated, reserved = self._final.get(device, (0, 0))
            live = segment.get("requested_size") or segment.get("allocated_size")
            total = segment.get("total_size")
            self._final[device] = (
                allocated + (live if isinstance(live, int) else 0),
                reserved + (total if isinstance(total, int) else 0),
            )
            address = segment.get("address")
            self._row("segment", str(segment.get("segment_type", "")), segment, address, device)
            for block in blocks if isinstance(blocks, list) else []:
                if isinstance(block, dict):
                    if block.get("state") == _LIVE and isinstance(block.get("address"), int):
                        self._live_blocks.setdefault(device, set()).add(block["address"])
                    fields = {**block, "segment": address}
                    self._row("block", str(block.get("state", "")), fields, block.get("address"), device)
                else:
                    self.session.quarantine({"block": block, "segment": address}, "no_block")

    def _row(self, kind: str, name: str, fields: dict[str, Any], key: Any, device: int) -> None:
        chain = self._chain(fields.pop("frames", None))
        if chain is not None:
            fields = {**fields, "stack_id": chain.stack_id, "site_id": chain.site_id}
        self.session.source_row(kind, name, {**fields, "device": device}, key=key)

    def keep_rest(self, document: dict[str, Any]) -> None:
        """Allocator settings, annotations and whatever else a version adds."""
        traces = document.pop("device_traces", None)
        for device, entries in enumerate(traces if isinstance(traces, list) else []):
            # Batches were taken while reading; what is left came in another form than lists of records.
            for entry in entries if isinstance(entries, list) else []:
                if isinstance(entry, dict):
                    self._entry(entry, device)
                else:
                    self.session.quarantine({"entry": entry}, "no_memory_event")
            self._devices.add(device)
        settings = document.pop("allocator_settings", None)
        if isinstance(settings, dict):
            self._npu = self._npu or any("NPU" in str(key) for key in settings)
            self.session.writer.manifest.attributes["allocator_settings"] = {
                str(key): value if isinstance(value, int | float | str | bool) else str(value)
                for key, value in settings.items()
            }
        for name, value in document.items():
            for item in value if isinstance(value, list) else [value]:
                fields = item if isinstance(item, dict) else {"value": item}
                time = fields.get("time_us")
                self.session.source_row(
                    "annotation" if name == "external_annotations" else "metadata",
                    str(fields.get("name", name)),
                    fields,
                    timestamp_ns=time * 1000 if isinstance(time, int) else None,
                )

    def finish(self) -> None:
        device_type = "npu" if self._npu else "cuda"
        self.history.write(device_type, self._final)
        writer = self.session.writer
        if self._devices:
            writer.write(
                "devices",
                [
                    {
                        "device": f"{device_type}:{number}",
                        "name": "",
                        "vendor": "huawei" if self._npu else None,
                        "attributes": None,
                    }
                    for number in sorted(self._devices)
                ],
            )
        if len(self.history) and not self.history.timed:
            writer.health(
                "no_times",
                "warning",
                len(self.history),
                "The history has no times: the order of its records is real, their distances are not.",
                "Newer PyTorch versions record times.",
                "memory",
            )
        if self.history.freed_before:
            writer.health(
                "history_begins_late",
                "info",
                self.history.freed_before,
                "Memory was freed that had been allocated before the recorded history begins.",
                "Call torch.cuda.memory._record_memory_history() earlier or with more max_entries.",
                "memory",
            )
        self._compare_live()

    def _compare_live(self) -> None:
        """Blocks that are live at the end but were allocated outside the history: their lines are not known."""
        if not len(self.history):
            return
        unknown = sum(len(blocks - set(self.history.live(d))) for d, blocks in self._live_blocks.items())
        if unknown:
            self.session.writer.health(
                "live_before_history",
                "info",
                unknown,
                "Blocks are live at the end that were allocated before the recorded history begins; their lines are not known.",
                "Call torch.cuda.memory._record_memory_history() before the model is made.",
                "memory",
            )
