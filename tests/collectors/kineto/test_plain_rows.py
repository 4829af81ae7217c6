"""The one-pass reader gives the same columns as the general one, whatever the rows look like."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from explorer.collectors.kineto.plain import compact, read_plain
from explorer.collectors.kineto.rows import SCHEMA, _general, _pieces, read_rows

KERNEL = {
    "ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 12.345, "dur": 1.001,
    "args": {"External id": 3, "device": 0, "stream": 7, "correlation": 41, "grid": [1, 2, 3]},
}  # fmt: skip
OP = {
    "ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 2, "ts": 11, "dur": 2,
    "args": {"External id": 3, "Input Dims": [[2, 3], []], "Input type": ["float", ""], "Sequence number": 9},
}  # fmt: skip
FRAME = {
    "ph": "X", "cat": "python_function", "name": "a.py(1): f", "pid": 1, "tid": 2, "ts": 1.5, "dur": 20,
    "args": {"Python id": 1},
}  # fmt: skip
ARROW = {"ph": "f", "cat": "ac2g", "name": "ac2g", "id": 41, "pid": 0, "tid": 7, "ts": 12.345, "bp": "e"}
PLAIN = [KERNEL, OP, FRAME, ARROW]


def text_of(rows: list[Any], **layout: Any) -> bytes:
    return json.dumps(rows, **layout).encode()[1:-1]


def unspaced(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def assert_same(text: bytes) -> None:
    wanted = _general(_pieces(text))
    with pytest.MonkeyPatch.context() as patch:
        assert_like(wanted, read_rows(text))
        patch.setenv("NE_NO_SCANNER", "1")
        assert_like(wanted, read_rows(text))


def assert_like(wanted: pa.Table, found: pa.Table) -> None:
    assert found.schema.equals(SCHEMA)
    for name in SCHEMA.names:
        a, b = wanted.column(name).to_pylist(), found.column(name).to_pylist()
        if name in ("attributes", "shapes", "dtypes", "args"):
            a, b = ([value and unspaced(value) for value in values] for values in (a, b))
        assert a == b, name


@pytest.mark.parametrize("layout", [{"separators": (",", ":")}, {}, {"indent": 2}])
def test_usual_rows_are_read_in_one_pass(layout: dict[str, Any]) -> None:
    text = text_of(PLAIN, **layout)
    found = read_plain(compact(text))
    assert found is not None
    assert found[1].all()
    assert found[0]["ts"].to_pylist() == [12_345, 11_000, 1_500, 12_345]
    assert_same(text)


@pytest.mark.parametrize(
    "change",
    [
        {"ts": "12.345"}, {"ts": None}, {"ts": 1735632360000000.123}, {"ts": 12.0005}, {"dur": True}, {"ts": 1e300},
        {"pid": "Spans"}, {"pid": 1.5}, {"tid": "stream 7"}, {"pid": None}, {"name": 5}, {"name": None}, {"cat": ""},
        {"id": 5}, {"bp": "e"}, {"s": "t"}, {"sf": 3}, {"cname": "good"}, {"args": []}, {"args": {}}, {"args": "x"},
        {"args": {"correlation": "41"}}, {"args": {"correlation": 1 << 70}}, {"args": {"correlation": 4.0}},
        {"args": {"bytes": "12", "a": 1}}, {"args": {"bytes": "012"}}, {"args": {"Bytes": 5}}, {"args": {"stream": "0x10"}},
        {"args": {"x": {"correlation": 5}, "correlation": 5}}, {"args": {"a": '"correlation":5,', "correlation": 5}},
        {"args": {"Input Dims": "x"}}, {"args": {"Input dims": [[1]], "external id": 4}}, {"args": {"Call stack": "a.py(1)"}},
        {"args": {"Collective name": "allreduce", "dtype": "Float", "In msg nelems": 4}}, {"name": "[memory]", "ph": "i"},
        {"ph": "M", "args": {"name": "python"}}, {"ph": "C", "args": {"v": 1}}, {"ph": ""}, {"ph": None},
    ],
)  # fmt: skip
def test_any_other_row_among_them_reads_as_before(change: dict[str, Any]) -> None:
    for row in PLAIN:
        assert_same(text_of([KERNEL, OP, {**row, **change}, FRAME, ARROW]))


@settings(max_examples=60)
@given(
    st.lists(
        st.builds(
            lambda us, ns, dur, name: {**OP, "ts": float(f"{us}.{ns:03d}"), "dur": dur, "name": name},
            st.integers(0, 2_000_000_000_000), st.integers(0, 999), st.integers(0, 10**9), st.text(max_size=8),
        ),
        min_size=1,
        max_size=5,
    )
)  # fmt: skip
def test_times_and_names_are_exact(rows: list[dict[str, Any]]) -> None:
    # Lone surrogates are mended before a chunk is read.
    assert_same(text_of(rows, separators=(",", ":")))


TEXTS = st.sampled_from(
    ["a", "", '":', '"', "\\", '\\"', "},{", '{"args":{', "}}", "\u00e9", "[{", "ts", "\n"]
)
NAMES = st.sampled_from(
    [
        "args",
        "ts",
        "name",
        "correlation",
        "bytes",
        "stream",
        "Input Dims",
        "External id",
        "x",
        '":',
        "\\",
        "}",
    ]
)
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-5, 1 << 62), TEXTS),
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(NAMES, inner, max_size=2)),
    max_leaves=4,
)


@settings(max_examples=150)
@given(
    st.lists(
        st.builds(
            lambda base, changes, arguments, name, turned: dict(
                list({**base, "name": name, **changes, "args": arguments}.items())[:: -1 if turned else 1]
            ),
            st.sampled_from([KERNEL, OP, FRAME]), st.dictionaries(NAMES, VALUES, max_size=1),
            st.dictionaries(NAMES, VALUES, max_size=4), TEXTS, st.booleans(),
        ),
        min_size=1,
        max_size=4,
    )
)  # fmt: skip
def test_any_text_and_nesting_reads_as_before(rows: list[dict[str, Any]]) -> None:
    assert_same(text_of(rows, separators=(",", ":")))
