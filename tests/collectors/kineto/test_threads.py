"""A trace whose chunks are read and written side by side in threads gives the run that reading it alone gives."""

from __future__ import annotations

import threading
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from explorer.collectors.kineto import importer, reading
from explorer.collectors.kineto.compiled import compiled
from explorer.collectors.kineto.reading import Reader, Threads
from explorer.collectors.options import ImportOptions
from explorer.collectors.source import open_source
from explorer.collectors.workers import Workers
from tests.collectors.kineto.test_unchecked_chunks import TRACE, contents, in_small_chunks

needs_scanner = pytest.mark.skipif(compiled() is None, reason="the scanner is not built: no C compiler")


@needs_scanner
@pytest.mark.parametrize("kept", ["memory", "scratch folder"])
@pytest.mark.parametrize("damage", [b"", b"}", b'{"ph":"X","name":5,"ts":"7","x":1},'])
def test_threads_give_the_run_that_one_gives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: str, damage: bytes
) -> None:
    trace = tmp_path / "t.json"
    place = TRACE.index(b'{"ph"', len(TRACE) // 2)
    trace.write_bytes(TRACE[:place] + damage + TRACE[place:])
    monkeypatch.setattr(importer, "TraceText", partial(in_small_chunks, quick=True))
    if kept == "scratch folder":
        monkeypatch.setattr(reading, "MEMORY_PER_BYTE", 1 << 50)
    alone = contents(trace, tmp_path / "alone")
    used: set[str] = set()
    decode = reading.read_rows

    def watched(text: bytes) -> Any:
        used.add(threading.current_thread().name)
        return decode(text)

    monkeypatch.setattr(reading, "read_rows", watched)
    monkeypatch.setattr(reading, "THREADED_BYTES", 0)
    monkeypatch.setattr(reading, "_processors", lambda: 3)
    assert contents(trace, tmp_path / "threads") == alone
    assert threading.current_thread().name not in used
    assert len(alone[0]) >= 1499


@pytest.mark.parametrize("scanner", [pytest.param(True, marks=needs_scanner), False])
def test_processes_are_for_where_there_is_no_scanner(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scanner: bool
) -> None:
    if not scanner:
        monkeypatch.setenv("NE_NO_SCANNER", "1")
    monkeypatch.setattr(reading, "THREADED_BYTES", 0)
    monkeypatch.setattr(reading, "PARALLEL_BYTES", 0)
    monkeypatch.setattr(reading, "_processors", lambda: 2)
    trace = tmp_path / "t.json"
    trace.write_bytes(TRACE)
    (source,) = open_source(trace)
    with Reader(source, ImportOptions()) as reader:
        assert isinstance(reader._workers, Threads if scanner else Workers)
