"""The compiled scanner gives the tables that the other readers give, for whole traces and for damaged rows."""

from __future__ import annotations

import json
import os
import shutil
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from explorer.collectors.kineto import compiled as compiled_module
from explorer.collectors.kineto.compiled import compiled
from explorer.collectors.kineto.importer import recognises
from explorer.collectors.kineto.light import distil
from explorer.collectors.kineto.rows import SCHEMA, WORDS, read_rows, repeats_of
from explorer.collectors.kineto.scanning import scan
from explorer.collectors.kineto.splitter import TraceText
from explorer.collectors.source import open_source
from explorer.model.errors import InputError
from tests.traces import all_traces, trace

HAS_COMPILER = bool(shutil.which("cc") and Path(sysconfig.get_paths()["include"], "Python.h").is_file())
SAMPLES = sorted(Path(__file__).parents[3].glob("sample_traces/**/*.json*"))
JSON_COLUMNS = ("attributes", "shapes", "dtypes", "args")

needs_scanner = pytest.mark.skipif(compiled() is None, reason="the scanner is not built: no C compiler")


@contextmanager
def without_scanner() -> Iterator[None]:
    os.environ["NE_NO_SCANNER"] = "1"
    try:
        yield
    finally:
        del os.environ["NE_NO_SCANNER"]


def unspaced(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def assert_equal(text: bytes) -> pa.Table | None:
    """The rows of a text, the same with and without the scanner; None where both refuse it."""
    try:
        with without_scanner():
            wanted = read_rows(text)
    except msgspec.DecodeError:
        with pytest.raises(msgspec.DecodeError):
            read_rows(text)
        return None
    found = read_rows(text)
    assert found.schema.equals(SCHEMA)
    assert repeats_of(found) == repeats_of(wanted)
    for name in SCHEMA.names:
        a, b = wanted.column(name), found.column(name)
        if name in WORDS:
            a, b = a.cast(pa.string()), b.cast(pa.string())
        if a.equals(b):
            continue
        assert name in JSON_COLUMNS, name
        pairs = [(x and unspaced(x), y and unspaced(y)) for x, y in zip(a.to_pylist(), b.to_pylist())]
        assert [x for x, y in pairs if x != y] == [], name
    return found


def chunks(path: Path) -> Iterator[bytes]:
    for source in open_source(path):
        if recognises(source):
            for chunk in TraceText(source.blocks()).chunks():
                yield chunk.text


@pytest.mark.skipif(not HAS_COMPILER, reason="no C compiler")
def test_it_is_there_where_a_compiler_is() -> None:
    assert compiled() is not None


def test_a_setting_leaves_it_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NE_NO_SCANNER", "1")
    assert compiled() is None
    assert scan(b'{"ph":"X"}') is None


@needs_scanner
def test_one_of_another_version_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled_module, "LAYOUT", compiled_module.LAYOUT + 1)
    assert compiled() is None


@needs_scanner
@pytest.mark.parametrize("name", all_traces())
def test_real_traces_read_the_same(name: str) -> None:
    try:
        texts = list(chunks(trace(name)))
    except InputError:
        pytest.skip("no JSON trace")
    for text in texts:
        assert_equal(text)


@needs_scanner
@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name)
def test_sample_traces_read_the_same(path: Path) -> None:
    for text in chunks(path):
        assert_equal(text)


@needs_scanner
@pytest.mark.parametrize("layout", [{"separators": (",", ":")}, {}, {"indent": 1}])
def test_rows_of_kineto_need_no_other_reader(layout: dict[str, Any]) -> None:
    text = json.dumps(ROWS, **layout).encode()[1:-1]
    found = scan(text)
    assert found is not None
    assert found.count == len(ROWS)
    assert found.other.tolist() == []
    table = assert_equal(text)
    assert table is not None
    assert table.column("ts").to_pylist() == [
        12_345, 11_000, 1_500, 12_345, 1_735_632_360_000_123, None, 5_000, 2_000, 7_000
    ]  # fmt: skip
    assert table.column("stream").to_pylist() == [7, *[None] * 6, 31, None]
    assert table.column("allocated_bytes").to_pylist()[4] == 96
    assert table.column("label").to_pylist()[5] == "python"
    assert table.column("args").to_pylist()[6] == '{"a":1.5,"b":-2}'
    assert table.column("collective").to_pylist()[7] == [
        "allreduce", "0", None, "[0, 1]", "4", "4", "2", "Float", None, None, None
    ]  # fmt: skip
    assert table.column("shapes").to_pylist()[1] == "[[2,3],[]]"


def test_half_a_nanosecond_goes_to_the_even_one() -> None:
    times = [
        "0.0005",
        "0.0015",
        "-0.0025",
        "0.0005000001",
        "-0",
        "0.1234565",
        "9000000000000000",
        "1e3",
        "1e30",
    ]
    text = ",".join(f'{{"ph":"X","ts":{time}}}' for time in times).encode()
    table = assert_equal(text)
    assert table is not None
    assert table.column("ts").to_pylist() == [0, 2, -2, 1, 0, 123, 9_000_000_000_000_000_000, 1_000_000, None]


def test_a_repeated_name_is_told_with_its_place() -> None:
    good, bad = b'{"ph":"X","ts":1,"args":{"a":1}}', b'{"ph":"X","ts":1,"args":{"a":1,"b":2,"a":3}}'
    table = assert_equal(b",\n".join([good, good, bad, good]))
    assert table is not None
    assert repeats_of(table) == (1, 2 * len(good) + 4)


@needs_scanner
@pytest.mark.parametrize(
    "text",
    [
        b"", b" ", b"{", b'{"', b'{"ph', b'{"ph"', b'{"ph":', b'{"ph":"', b'{"ph":"X', b'{"ph":"X"', b'{"ph":"X"},',
        b",", b'{"ph":"X"}}', b'{"ph":"X",}', b'{"ph":01}', b'{"ph":1.}', b'{"ph":-}', b'{"ph":1e}', b'{"ph":tru}',
        b'{"ph":"\\x"}', b'{"ph":"\\u12"}', b'{"ph":"\\ud800"}', b'{"ph":"\\udc00"}', b'{"ph":"\\ud800\\u0041"}',
        b'{"ph":"a\nb"}', b'{"ph" "X"}', b'{ph:1}', b'{"args":{"a":[}}', b'{"args":{"a":[1,]}}', b'{"args":{"a"}}',
        b'{"args":{,}}', b"[" * 100 + b"]" * 100, b'{"args":' * 100 + b"1" + b"}" * 100, b"1,,2", b"\0", b"nul",
    ],
)  # fmt: skip
def test_what_is_no_json_is_left_to_others(text: bytes) -> None:
    assert scan(text) is None


@needs_scanner
@given(st.binary(max_size=60), st.integers(0, 60))
def test_it_never_writes_beyond_the_room_it_has(text: bytes, limit: int) -> None:
    scanner = compiled()
    assert scanner is not None
    text = b'{"ph":"X","name":"' + text.hex().encode() + b'","args":{"a":[ 1 ]}},' * 3
    sizes = (16 * 8 * limit, 10 * 4 * limit, 4 * limit, 27 * limit, 12 * limit, 48 * limit, 4 * limit, limit, 10 * limit, 40 * limit, 344)  # fmt: skip
    guarded = [np.full(size + 64, 0xA5, np.uint8) for size in sizes]
    scanner.scan(text, *(buffer[: len(buffer) - 64] for buffer in guarded))
    assert all((buffer[-64:] == 0xA5).all() for buffer in guarded)


ROWS: list[dict[str, Any]] = [
    {
        "ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 12.345, "dur": 1.001,
        "args": {"External id": 3, "device": 0, "stream": 7, "correlation": 41, "grid": [1, 2, 3]},
    },
    {
        "ph": "X", "cat": "cpu_op", "name": "aten::\u00e9 \"x\"", "pid": "a", "tid": "1", "ts": 11, "dur": 2,
        "args": {"Input Dims": [[2, 3], []], "Input type": ["float", ""], "Sequence number": 9, "e": {}},
    },
    {"ph": "X", "cat": "python_function", "name": "a.py(1): f", "ts": 1.5, "args": {"Python id": 1, "bytes": 4}},
    {"ph": "f", "cat": "ac2g", "name": "ac2g", "id": 41, "pid": 0, "tid": 7, "ts": 12.345, "bp": "e"},
    {
        "ph": "i", "s": "t", "name": "[memory]", "pid": 1, "tid": 2, "ts": 1735632360000.123,
        "args": {
            "Addr": 5, "Bytes": -64, "Device Id": -1, "Device Type": 0, "Total Allocated": 96, "Total Reserved": 128,
        },
    },
    {"ph": "M", "name": "process_name", "pid": 1, "tid": 0, "args": {"name": "python"}},
    {"ph": "C", "name": "memory", "pid": 1, "ts": 5, "args": {"a": 1.5, "b": -2}},
    {
        "ph": "X", "cat": "kernel", "name": "ncclKernel", "pid": 0, "tid": 7, "ts": 2, "dur": 3,
        "args": {
            "Collective name": "allreduce", "Process Group Name": "0", "Process Group Ranks": "[0, 1]",
            "In msg nelems": 4, "Out msg nelems": 4, "Group size": 2, "dtype": "Float", "stream": "0x1f",
        },
    },
    {"ph": "B", "name": "b", "pid": 1, "tid": 1, "ts": 7},
]  # fmt: skip

TOKENS = st.sampled_from(
    [
        b"{", b"}", b"[", b"]", b'"', b":", b",", b"\\", b"\\u00e9", b"\\ud83d\\ude00", b"\\udead", b" ", b"\n", b"null",
        b"true", b"-", b"-0", b"0", b"1e5", b"1.5", b'"ph":"X",', b'"args":{},', b'"correlation":5,', b'"bytes":"7",',
        b'"Bytes":8,', b'"External id":', b'"external id":1,', b"\x00", b"\x7f", b"9" * 20, b".0005", b'"id":"0x5",',
        b'"s":"t",', b'"[memory]"', b'"\\u005bmemory]"', b'"ph":"i",', b'"ph":"M",', b'"ph":"C",', b'{}', b'[{"a":1}]',
        b'"Call stack":"a;b",', b'"stream":"0x1f",', b'"Collective name":"x",', b'"stream id":3,', b'"cat":"python_function",',
        b'"name":"n",', b'"labels":"l",', b'"Input dims":[1],', b'"dtype":null,', b'"\\u0061":1,', b'"sf":7,',
    ]
)  # fmt: skip
CHANGES = st.lists(
    st.tuples(
        st.floats(0, 1, exclude_max=True), st.integers(0, 12), st.one_of(TOKENS, st.binary(max_size=2))
    ),
    max_size=4,
)


@needs_scanner
@settings(max_examples=250)
@given(
    st.lists(st.tuples(st.sampled_from(ROWS), CHANGES), min_size=1, max_size=3),
    st.sampled_from([b",", b" ,\n"]),
)
def test_damaged_rows_read_the_same(rows: list[tuple[dict[str, Any], Any]], between: bytes) -> None:
    texts = []
    for row, changes in rows:
        text = bytearray(msgspec.json.encode(row))
        for where, size, put in changes:
            place = int(where * len(text))
            text[place : place + size] = put
        texts.append(bytes(text).decode("utf-8", "replace").encode())
    assert_equal(between.join(texts))


@needs_scanner
def test_colliding_texts_cost_a_bounded_time() -> None:
    # Far more distinct words than slots at the beginning; each is found again.
    names = [f"name {i:x}" for i in range(50_000)]
    text = ",".join(f'{{"ph":"X","name":"{name}"}}' for name in names + names).encode()
    found = scan(text)
    assert found is not None
    column = found.columns["name"]
    assert column.dictionary.to_pylist() == names
    assert column.indices.to_pylist() == [*range(50_000), *range(50_000)]


@pytest.mark.parametrize("threads", [3, 70_000])
def test_tracks_are_numbered_as_they_appear_whoever_reads(threads: int) -> None:
    # The reader of odd rows meets its words after the others'.
    rows = [
        {"ph": "X", "name": "n", "pid": thread % 2, "tid": thread, "ts": 1}
        for thread in range(threads, 0, -1)
    ]
    rows[0]["pid"] = [[1]]
    text = json.dumps(rows + rows[1:3]).encode()[1:-1]
    wanted = [("[[1]]", str(threads)), *((str(row["pid"]), str(row["tid"])) for row in rows[1:])]
    with without_scanner():
        plain = distil(read_rows(text))
    for found in (plain, distil(read_rows(text))):
        assert found.tracks == wanted
        assert found.codes["track"].tolist() == [*range(threads), 1, 2]
