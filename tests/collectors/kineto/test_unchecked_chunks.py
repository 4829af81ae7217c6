"""Chunks that are cut without being checked first give what checked ones give, whatever is damaged."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from explorer.analysis.run import open_run
from explorer.collectors.import_trace import import_trace
from explorer.collectors.kineto import importer
from explorer.collectors.kineto.splitter import TraceText

EVENTS = [
    {
        "ph": "X", "cat": "cpu_op", "name": f"op {i}", "pid": 1, "tid": 1, "ts": 10 * i, "dur": 5,
        "args": {"External id": i, "inputs": [{"name": "a", "id": i}, {"name": "b"}] if i % 7 == 0 else "},{"},
    }
    for i in range(1500)
]  # fmt: skip
TRACE = (
    b'{"schemaVersion": 1, "traceEvents": [\n'
    + b",\n".join(json.dumps(e).encode() for e in EVENTS)
    + b'\n], "traceName": "x"}'
)


def pieces(blocks: Iterator[bytes], size: int = 2048) -> Iterator[bytes]:
    for block in blocks:
        for start in range(0, len(block), size):
            yield block[start : start + size]


def in_small_chunks(
    blocks: Iterator[bytes],
    _: int,
    reopen: Callable[[int], Iterator[bytes]] | None,
    *,
    quick: bool,
) -> TraceText:
    again = None if reopen is None or not quick else lambda offset: pieces(reopen(offset))
    return TraceText(pieces(blocks), chunk_bytes=4096, reopen=again)


def contents(path: Path, run: Path) -> Any:
    directory = import_trace(path, run).directory
    with open_run(directory) as opened:
        rows = opened.sql("SELECT name, start_ns, attributes FROM events ORDER BY start_ns, name").rows()
        (manifest,) = opened.reader.manifests.values()
    return rows, manifest.losses, manifest.repairs, manifest.attributes.get("top_level"), manifest.counts


def test_chunks_are_cut_without_reading_them(tmp_path: Path) -> None:
    text = in_small_chunks(iter([TRACE]), 0, lambda offset: iter([TRACE[offset:]]), quick=True)
    checked = Counter(chunk.checked for chunk in text.chunks())
    assert checked[False] >= 5
    assert checked[True] == 1


@pytest.mark.parametrize("seed", range(12))
def test_damage_is_found_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    random_ = random.Random(seed)
    data = bytearray(TRACE)
    for _ in range(seed % 4):
        data[random_.randrange(60, len(data))] = random_.choice(b'"}{,]\\x0')
    trace = tmp_path / "t.json"
    trace.write_bytes(data)
    monkeypatch.setattr(importer, "TraceText", partial(in_small_chunks, quick=True))
    quick = contents(trace, tmp_path / "quick")
    monkeypatch.setattr(importer, "TraceText", partial(in_small_chunks, quick=False))
    assert quick == contents(trace, tmp_path / "careful")
    assert len(quick[0]) > 1450
