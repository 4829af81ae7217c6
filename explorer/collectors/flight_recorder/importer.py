"""Import of PyTorch flight recorder dumps, pickle or JSON: each communication call with its state, line and group.

As torch/csrc/distributed/c10d/FlightRecorder.hpp writes them (versions 2.x): `entries` (process_group, collective_seq_id or
p2p_seq_id, profiling_name, times, sizes, state, frames), `pg_config` (ranks of each group) and `pg_status`. Pickles are read
as plain data: nothing in them can run.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from explorer.collectors.call_stacks import CallStack, Frame
from explorer.collectors.import_session import ImportSession
from explorer.collectors.json_document import read_document
from explorer.collectors.kineto.collectives import SIZES, operation_of
from explorer.collectors.memory_snapshot.plain_pickle import PickleBroken, PickleRefused, PlainPickle
from explorer.collectors.options import DEFAULTS, ImportOptions
from explorer.collectors.row_buffer import attributes_json
from explorer.collectors.source import Damaged, Source
from explorer.collectors.source_content import read_content
from explorer.model.errors import InputError

if TYPE_CHECKING:
    from explorer.store.writer import RunWriter

NAME = "flight_recorder"
_KEYS = (b"pg_config", b"pg_status", b"collective_seq_id")


def recognises(source: Source) -> bool:
    """A pickle or a JSON object that names a dump's keys."""
    head = source.head
    is_json = head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"{" and b'"traceEvents"' not in head
    return (is_json or head[:1] == b"\x80") and sum(key in head for key in _KEYS) >= 2


def import_source(source: Source, writer: RunWriter, options: ImportOptions = DEFAULTS) -> None:
    """Read a dump. Raises InputError when it cannot be read or holds anything but plain data."""
    session = ImportSession(writer, source, NAME, options)
    document = _document(source, session)
    entries = document.pop("entries", None)
    dump = _Dump(session, document.get("pg_config"))
    for entry in entries if isinstance(entries, list) else []:
        if isinstance(entry, dict):
            dump.add(entry)
        else:
            session.quarantine({"entry": entry}, "no_call")
    session.source_row("metadata", "flight_recorder", document)
    if dump.open:
        name, where = dump.open[0]
        writer.health(
            "unfinished_communication",
            "warning",
            len(dump.open),
            f"{len(dump.open)} communication calls had not completed when the recorder was dumped, the first: {name} {where}.",
            "neuron-explorer ranks shows which rank did not arrive.",
            "ranks",
        )
    session.close()


def _document(source: Source, session: ImportSession) -> dict[str, Any]:
    if source.head[:1] != b"\x80":
        content = read_content(source)
        document = read_document(content.data, source.path)
        if damage := document.damage or content.damage:
            session.lost("the file", damage, offset=document.offset)
        found = document.value
    else:
        found = _unpickled(source)
    if not isinstance(found, dict) or not isinstance(found.get("entries", []), list):
        raise InputError(f"{source.path} is no flight recorder dump (it has no entries).")
    return found


def _unpickled(source: Source) -> Any:
    def blocks() -> Iterator[bytes]:
        try:
            yield from source.blocks()
        except Damaged as error:
            raise PickleBroken(str(error), 0) from error

    try:
        return PlainPickle(blocks()).load()
    except PickleRefused as error:
        raise InputError(
            f"{source.path} is a pickle that would run code ({error}); nothing was run.",
            "A flight recorder dump holds plain data only: do not load this file with anything else either.",
        ) from error
    except PickleBroken as error:
        raise InputError(
            f"{source.path} cannot be read as a pickle: {error}.", "Dump the recorder again."
        ) from error


class _Dump:
    def __init__(self, session: ImportSession, groups: Any) -> None:
        self.session = session
        self.open: list[tuple[str, str]] = []
        self._ranks: dict[str, list[int]] = {}
        self._group_config(groups)

    def _group_config(self, groups: Any) -> None:
        for key, group in groups.items() if isinstance(groups, dict) else ():
            if not isinstance(group, dict):
                continue
            try:
                ranks = json.loads(str(group.get("ranks")))
            except ValueError:
                continue
            if isinstance(ranks, list):
                self._ranks[str(group.get("name") or key)] = ranks

    def add(self, entry: dict[str, Any]) -> None:
        group, description = self._group(entry)
        created = entry.get("time_created_ns")
        start = entry.get("time_discovered_started_ns") or created
        end = entry.get("time_discovered_completed_ns") or start
        name = str(entry.get("profiling_name") or "communication")
        is_pair = bool(entry.get("is_p2p"))
        sequence = entry.get("p2p_seq_id") if is_pair else entry.get("collective_seq_id")
        stack = self._stack(entry.get("frames"))
        is_done = entry.get("state") == "completed" or bool(entry.get("retired"))
        line = (
            {
                "stack_id": stack.stack_id,
                "site_id": stack.site_id,
                "attribution": "stack",
                "precision": "exact",
            }
            if stack
            else {}
        )
        number = self.session.event(
            track_id=self.session.tracks.thread(None, None, f"group {group} {description}".strip()),
            category="collective",
            name=name,
            start_ns=start,
            duration_ns=end - start if isinstance(start, int) and isinstance(end, int) else None,
            attributes=attributes_json(
                {key: value for key, value in entry.items() if key != "frames"} | {"finished": is_done}
            ),
            **line,
        )
        if number is None:
            return
        if not is_done:
            self.open.append((name, f"number {sequence} of group {group}"))
        count, size = _measured(entry)
        ranks = self._ranks.get(group) or (self._ranks.get("") if len(self._ranks) == 1 else None)
        self.session.collectives.append(
            {
                "event_id": number,
                "side": "host",
                "group": group,
                "group_description": description,
                "operation": operation_of(name.rpartition(":")[2].partition(" ")[0]),
                "dtype": _first(entry.get("input_dtypes")),
                "element_count": count,
                "size_bytes": size,
                "group_size": len(ranks) if ranks else None,
                "group_ranks": json.dumps(ranks) if ranks else None,
                "sequence": sequence if isinstance(sequence, int) else None,
            }
        )

    @staticmethod
    def _group(entry: dict[str, Any]) -> tuple[str, str]:
        group = entry.get("process_group")
        if isinstance(group, list | tuple) and len(group) == 2:
            return str(group[0]), str(group[1])
        return str(entry.get("pg_id", "")), ""

    def _stack(self, frames: Any) -> CallStack | None:
        return self.session.stacks.stack(
            Frame(
                str(frame.get("filename", "")),
                frame["line"] if isinstance(frame.get("line"), int) else 0,
                str(frame.get("name", "")),
            )
            for frame in (frames if isinstance(frames, list) else [])
            if isinstance(frame, dict) and frame.get("filename")
        )


def _first(values: Any) -> str | None:
    return str(values[0]) if isinstance(values, list) and values else None


def _measured(entry: dict[str, Any]) -> tuple[int | None, int | None]:
    """(elements, bytes) of the inputs."""
    sizes = entry.get("input_sizes")
    if not isinstance(sizes, list) or not sizes:
        return None, None
    count = 0
    for dims in sizes:
        elements = 1
        for dim in dims if isinstance(dims, list) else []:
            elements *= dim if isinstance(dim, int) else 1
        count += elements
    width = SIZES.get((_first(entry.get("input_dtypes")) or "").lower())
    return count, count * width if width else None
