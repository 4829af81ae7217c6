"""The plain-data pickle reader: equal to pickle on data, deaf to everything else."""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import pickletools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from explorer.collectors.memory_snapshot.plain_pickle import PickleBroken, PickleRefused, PlainPickle

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False)
    | st.text(max_size=300)
    | st.binary(max_size=300)
)
plain_data = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=6)
        | st.tuples(inner, inner)
        | st.tuples(inner)
        | st.dictionaries(st.text(max_size=5) | st.integers(), inner, max_size=6)
        | st.sets(st.integers(), max_size=4)
        | st.frozensets(st.text(max_size=3), max_size=4)
    ),
    max_leaves=30,
)


def load(data: bytes, block: int = 1 << 20):
    return PlainPickle(iter([data[i : i + block] for i in range(0, len(data), block)])).load()


@settings(max_examples=300)
@given(plain_data, st.integers(4, 5), st.integers(1, 50))
def test_plain_data_reads_as_pickle_reads_it(value, protocol, block):
    assert load(pickle.dumps(value, protocol), block) == value


@settings(max_examples=150)
@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers(-(2**70), 2**70)
        | st.floats(allow_nan=False)
        | st.text(max_size=40),
        lambda inner: (
            st.lists(inner, max_size=5)
            | st.dictionaries(st.text(max_size=5), inner, max_size=5)
            | st.tuples(inner)
        ),
        max_leaves=20,
    ),
    st.integers(0, 3),
)
def test_old_protocols(value, protocol):
    assert load(pickle.dumps(value, protocol)) == value


def test_shared_and_optimized_objects_stay_shared():
    inner = [1, 2]
    found = load(pickletools.optimize(pickle.dumps({"a": inner, "b": inner})))
    assert found["a"] is found["b"]


class Runs:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (os.mkdir, (self.path,))


@pytest.mark.parametrize("protocol", range(6))
def test_code_is_refused_and_never_runs(tmp_path, protocol):
    target = str(tmp_path / "made")
    with pytest.raises(PickleRefused, match="GLOBAL"):
        load(pickle.dumps({"segments": [], "x": Runs(target)}, protocol))
    assert not os.path.exists(target)


@pytest.mark.parametrize(
    ("data", "operation"),
    [
        (b"\x80\x02cos\nsystem\n.", "GLOBAL"),
        (b"(S'ls'\nios\nsystem\n.", "INST"),
        (b"\x80\x02\x82\x01.", "EXT1"),
        (b"\x80\x02Pabc\n.", "PERSID"),
        (b"\x80\x02K\x01Q.", "BINPERSID"),
        (b"\x80\x05\x97.", "NEXT_BUFFER"),
        (b"\x80\x02N)\x81.", "NEWOBJ"),
        (b"\x80\x02NNR.", "REDUCE"),
        (b"\x80\x02N}b.", "BUILD"),
    ],
)
def test_every_way_to_code_is_named(data, operation):
    with pytest.raises(PickleRefused, match=operation):
        load(data)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x80\x04",
        b"\x80\x04.",
        b"\x80\x04K",
        b"\x80\x04h\x09.",
        b"\x80\x04a.",
        b"\x80\x04N(Nu.",
        b"\x80\x04]N\x86\x86.",
        b"\x80\x04}](Ns.",
        b"\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\x7fx.",
        b"\x80\x04\x8b\xff\xff\xff\x7f.",
        b"\x80\x04X\xff\xff\xff\xff.",
        b"\xff",
        b"\x80\x04X\x01\x00\x00\x00\xff.",
        b"I12x\n.",
        b"p99999999999999999999\n.",
    ],
)
def test_malformed_pickles_are_broken_not_crashes(data):
    with pytest.raises(PickleBroken):
        load(data)


def test_a_huge_memo_number_costs_no_memory():
    assert load(b"\x80\x02]r\xff\xff\xff\xff.") == []


@settings(max_examples=300)
@given(st.binary(max_size=200))
def test_any_bytes_end_in_data_or_a_known_error(data):
    with contextlib.suppress(PickleBroken, PickleRefused):
        load(b"\x80\x04" + data)


def test_taken_items_are_not_appended():
    taken = []

    def take(target, items, stack, outer):
        if items and isinstance(items[0], dict):
            taken.extend(items)
            return True
        return False

    value = {"x": [[{"n": number} for number in range(2500)], [1, 2]]}
    found = PlainPickle(iter([pickle.dumps(value)]), take).load()
    assert found == {"x": [[], [1, 2]]}
    assert taken == value["x"][0]


def test_a_file_like_reader_is_not_needed():
    assert load(io.BytesIO(pickle.dumps([1])).read(), 1) == [1]
