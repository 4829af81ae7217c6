"""The tracks of one rank, numbered as they are met."""

from __future__ import annotations

from dataclasses import dataclass

from explorer.store.writer import RunWriter

_INT64 = range(-(2**63), 2**63)


@dataclass(slots=True)
class Track:
    """One row of `tracks`."""

    kind: str
    device_type: str
    device_index: int | None
    process_id: int | None
    process_name: str | None
    thread_id: int | None
    thread_name: str | None
    label: str


class TrackTable:
    """Gives every thread, stream, engine and counter its number, from `first` on."""

    def __init__(self, first: int = 0) -> None:
        self.first = first
        self.rows: list[Track] = []
        self._known: dict[tuple[object, ...], int] = {}

    def _add(self, key: tuple[object, ...], row: Track) -> int:
        number = self._known.get(key)
        if number is None:
            number = self._known[key] = self.first + len(self.rows)
            self.rows.append(row)
        return number

    def thread(
        self,
        process_id: int | None,
        thread_id: int | None,
        name: str | None = None,
        process: str | None = None,
    ) -> int:
        """A host thread."""
        label = name or (f"thread {thread_id}" if thread_id is not None else "thread")
        row = Track("thread", "cpu", None, _fit(process_id), process, _fit(thread_id), name, label)
        return self._add(("thread", process_id, thread_id, name if thread_id is None else None), row)

    def stream(
        self,
        device_type: str,
        device_index: int,
        stream: int | None,
        name: str | None = None,
        process_id: int | None = None,
        kind: str = "stream",
        process: str | None = None,
    ) -> int:
        """A stream, engine or queue of a device."""
        label = name or f"{kind} {stream}"
        row = Track(kind, device_type, device_index, _fit(process_id), process, _fit(stream), name, label)
        return self._add((kind, device_type, device_index, stream, name, process_id), row)

    def counter(
        self,
        name: str,
        device_type: str = "cpu",
        device_index: int | None = None,
        process_id: int | None = None,
    ) -> int:
        """A counter track."""
        row = Track("counter", device_type, device_index, _fit(process_id), None, None, name, name)
        return self._add(("counter", name, device_type, device_index, process_id), row)

    def write(self, writer: RunWriter) -> None:
        """Write all tracks."""
        if not self.rows:
            return
        columns = {name: [getattr(row, name) for row in self.rows] for name in Track.__slots__}
        writer.write("tracks", {"track_id": list(range(self.first, self.first + len(self.rows))), **columns})


def _fit(number: int | None) -> int | None:
    return number if number is None or number in _INT64 else None
