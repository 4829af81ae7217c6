"""Repair of one JSON object that strict JSON refuses: what profilers really write, mended without inventing anything."""

from __future__ import annotations

import re
from collections import Counter
from functools import partial

import msgspec

from explorer.collectors.kineto.deep import deep_as_text

_RAW = msgspec.json.Decoder(msgspec.Raw)
_STRING = rb'"(?:[^"\\]|\\.)*"'
_TOKEN = re.compile(
    _STRING
    + rb"|(?P<comma>,(?=\s*[}\]]))"
    + rb"|(?P<word>(?<![\w.\"])[-+]?(?:NaN|nan|NAN|[Ii]nf(?:inity)?|INF(?:INITY)?|True|False|None|undefined)(?:\([^()]*\))?(?![\w\"]))"
    + rb"|(?P<number>(?<![\w.\"+-])[-+]?(?:\d[\w.+-]*|\.\d[\w.+-]*))",
    re.DOTALL,
)
_NUMBER = re.compile(rb"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?")
_WORDS = {b"True": b"true", b"False": b"false", b"None": b"null", b"undefined": b"null"}
_BAD_IN_STRING = re.compile(
    rb"(?P<control>[\x00-\x1f])"
    rb"|(?P<pair>\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})"
    rb"|(?P<surrogate>\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
    rb'|(?P<good>\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))'
    rb"|(?P<backslash>\\)"
)
# A path that ends in a backslash swallows the closing quote; a quote inside a name was never escaped.
_SWALLOWED = re.compile(rb'(?<!\\)\\"(?=\s*(?:[}\]]|,\s*"[^"]*"\s*:))')
_LOOSE_STRING = re.compile(
    rb'(?<=[{\[,:])(\s*)"(.*?)(?<!\\)"(?=\s*(?::|[}\]]|,\s*["{\[\d-]|,\s*(?:true|false|null)))', re.DOTALL
)


def repair(piece: bytes) -> tuple[bytes, Counter[str]] | None:
    """The piece as strict JSON and the repairs by kind, or None where it cannot be mended.

    NaN and infinities become the strings they were written as; control characters and stray backslashes inside strings
    are escaped; lone surrogates become U+FFFD; trailing commas go; malformed numbers become strings, and so do values
    nested too deep for any reader.
    """
    for prepare, kind in _ATTEMPTS:
        kinds: Counter[str] = Counter()
        text = prepare(piece)
        if kind and text != piece:
            kinds[kind] += 1
        text = _TOKEN.sub(partial(_token, kinds), text)
        if _valid(text):
            return text, kinds
    return None


def _valid(text: bytes) -> bool:
    try:
        _RAW.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return False
    return text.lstrip()[:1] == b"{"


def _token(kinds: Counter[str], match: re.Match[bytes]) -> bytes:
    text = match.group()
    if match.lastgroup is None:
        return b'"' + _BAD_IN_STRING.sub(partial(_character, kinds), text[1:-1]) + b'"'
    if match.lastgroup == "comma":
        kinds["trailing_comma"] += 1
        return b""
    if match.lastgroup == "word":
        if text in _WORDS:
            kinds["python_literal"] += 1
            return _WORDS[text]
        kinds["not_a_number"] += 1
        return b'"' + text + b'"'
    if _NUMBER.fullmatch(text):
        return text
    kinds["malformed_number"] += 1
    return b'"' + text + b'"'


def _character(kinds: Counter[str], bad: re.Match[bytes]) -> bytes:
    text = bad.group()
    if bad.lastgroup in ("good", "pair"):
        return text
    if bad.lastgroup == "control":
        kinds["control_character"] += 1
        return b"\\u%04x" % text[0]
    if bad.lastgroup == "surrogate":
        kinds["lone_surrogate"] += 1
        return b"\\ufffd"
    kinds["stray_backslash"] += 1
    return b"\\\\"


def _as_it_is(piece: bytes) -> bytes:
    return piece


def _swallowed_quotes(piece: bytes) -> bytes:
    return _SWALLOWED.sub(rb'\\\\"', piece)


def _loose_quotes(piece: bytes) -> bytes:
    return _LOOSE_STRING.sub(
        lambda match: match.group(1) + b'"' + re.sub(rb'(?<!\\)"', rb'\\"', match.group(2)) + b'"', piece
    )


_ATTEMPTS = (
    (_as_it_is, ""),
    (deep_as_text, "deep_nesting"),
    (_swallowed_quotes, "stray_backslash"),
    (_loose_quotes, "unescaped_quote"),
)
