"""Damaged JSON documents: everything before the damage is kept, and the place of the damage is said."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from explorer.collectors.json_document import read_document
from explorer.model.errors import InputError

TEXT = json.dumps({"a": [{"n": number, "s": "xé" * 3} for number in range(30)], "b": {"c": 1}}).encode()


def test_a_whole_document_is_not_damaged() -> None:
    assert read_document(b"\xef\xbb\xbf" + TEXT, "x").damage is None


@pytest.mark.parametrize("junk", [b"}", b'"', b"nul", b"1 2", b"\x00", b"{,"])
def test_damage_in_the_middle_costs_what_follows_only(junk: bytes) -> None:
    place = TEXT.index(b'{"n": 17')
    found = read_document(TEXT[:place] + junk + TEXT[place + len(junk) :], "x")
    assert found.damage is not None
    assert [row["n"] for row in found.value["a"][:17]] == list(range(17))
    assert len(found.value["a"]) <= 18
    assert found.offset is not None
    assert abs(found.offset - place) < 40


@pytest.mark.parametrize("junk", [b"\x01", b"\xff"])
def test_bad_characters_in_strings_cost_nothing(junk: bytes) -> None:
    found = read_document(TEXT.replace(b'"x', b'"' + junk + b"x", 1), "x")
    assert len(found.value["a"]) == 30
    assert found.damage == "it holds characters or numbers that JSON does not allow"


@settings(max_examples=80)
@given(end=st.integers(20, len(TEXT) - 2))
def test_a_cut_document_gives_its_beginning(end: int) -> None:
    found = read_document(TEXT[:end], "x")
    whole = json.loads(TEXT)["a"]
    rows = found.value.get("a", [])
    assert rows[:-1] == whole[: max(len(rows) - 1, 0)]
    assert len(rows) >= TEXT[:end].count(b"}")
    assert found.damage == "it ends early"


def test_what_is_no_json_is_refused() -> None:
    for text in (b"", b"hello", b"[" * 100_000, b'{"a'):
        with pytest.raises(InputError, match="no readable JSON"):
            read_document(text, "x")
