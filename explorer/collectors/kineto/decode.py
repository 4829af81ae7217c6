"""One chunk of events to columns: every field of an event as its JSON text, without a Python object per value kept."""

from __future__ import annotations

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from explorer.collectors.kineto.nanoseconds import nanoseconds

_NONE = msgspec.Raw(b"")
FIELDS = ("ph", "cat", "name", "pid", "tid", "ts", "dur", "id", "args", "bp", "s")
"""The fields of the fast path; an event with any other field sends its chunk down the general path."""


class _Event(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    ph: msgspec.Raw = _NONE
    cat: msgspec.Raw = _NONE
    name: msgspec.Raw = _NONE
    pid: msgspec.Raw = _NONE
    tid: msgspec.Raw = _NONE
    ts: msgspec.Raw = _NONE
    dur: msgspec.Raw = _NONE
    id: msgspec.Raw = _NONE
    args: msgspec.Raw = _NONE
    bp: msgspec.Raw = _NONE
    s: msgspec.Raw = _NONE


_FAST = msgspec.json.Decoder(list[_Event])
_PIECES = msgspec.json.Decoder(list[msgspec.Raw])
_FIELDS = msgspec.json.Decoder(dict[str, msgspec.Raw])


def decode(text: bytes) -> pa.Table:
    """Columns of the events in `text`, the inside of a strict JSON array.

    ph, cat, name, pid, tid: dictionary-encoded strings, unquoted and unescaped; ts, dur: int64 ns, null where absent or
    no number; id, args: JSON text or null; rest: the other members as JSON text (`"bp":"e"`) or null; odd: the whole row
    where it is no object or a field has an impossible type, with `reason`.
    """
    line = text.replace(b"\n", b" ")
    rest: pa.Array
    try:
        events = _FAST.decode(b"[" + line + b"]")
    except msgspec.DecodeError:
        return _general(line)
    raw = {name: _column([getattr(event, name) for event in events]) for name in FIELDS}
    rest = _join_rest(raw.pop("bp"), raw.pop("s"))
    return _table(raw, rest)


def _general(line: bytes) -> pa.Table:
    """Any fields in any form: one dict per event."""
    values: dict[str, list[bytes]] = {name: [] for name in FIELDS[:9]}
    rest: list[str | None] = []
    odd: list[str | None] = []
    for piece in _PIECES.decode(b"[" + line + b"]"):
        text = bytes(piece)
        fields: dict[str, bytes] = {}
        problem = None
        if text.startswith(b"{"):
            fields = {key: bytes(value) for key, value in _FIELDS.decode(piece).items()}
        else:
            problem = text.decode()
        for name in FIELDS[:9]:
            values[name].append(fields.pop(name, b""))
        others = ",".join(
            f"{msgspec.json.encode(key).decode()}:{value.decode()}" for key, value in fields.items()
        )
        rest.append(others or None)
        odd.append(problem)
    raw = {name: _column(column) for name, column in values.items()}
    return _table(raw, pa.array(rest, pa.string()), pa.array(odd, pa.string()))


def _column(values: list[msgspec.Raw] | list[bytes]) -> pa.StringArray:
    """JSON texts of one field, empty where absent, as one Arrow column made from a single join."""
    count = len(values)
    joined = np.frombuffer(b"\n".join(values), np.uint8)
    if count == 0:
        return pa.array([], pa.string())
    breaks = np.flatnonzero(joined == 10)
    offsets = np.zeros(count + 1, np.int32)
    offsets[1:-1] = breaks - np.arange(count - 1)
    offsets[-1] = len(joined) - (count - 1)
    return pa.StringArray.from_buffers(
        count, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(joined[joined != 10]))
    )


def _table(raw: dict[str, pa.StringArray], rest: pa.Array, odd: pa.Array | None = None) -> pa.Table:
    count = len(rest)
    columns: dict[str, pa.Array] = {}
    for name in ("ph", "cat", "name", "pid", "tid"):
        columns[name] = _words(raw[name])
    columns["ts"] = nanoseconds(raw["ts"])
    columns["dur"] = nanoseconds(raw["dur"])
    columns["id"] = _empty_to_null(raw["id"])
    arguments = _empty_to_null(raw["args"])
    # args that are no object are kept as an ordinary member.
    strange = pc.and_kleene(pc.is_valid(arguments), pc.invert(pc.starts_with(arguments, "{")))
    if pc.any(strange).as_py():
        kept = pc.binary_join_element_wise('"args":', arguments, "")
        rest = pc.if_else(pc.fill_null(strange, False), _joined(rest, kept), rest)
        arguments = pc.if_else(pc.fill_null(strange, False), pa.scalar(None, pa.string()), arguments)
    for name in ("ts", "dur"):
        # A time that is no number stays visible as text.
        unread = pc.and_(pc.is_null(columns[name]), pc.greater(pc.binary_length(raw[name]), 0))
        if pc.any(unread).as_py():
            kept = pc.binary_join_element_wise(f'"{name}":', raw[name], "")
            rest = pc.if_else(unread, _joined(rest, kept), rest)
    columns["args"] = arguments
    columns["rest"] = rest
    columns["odd"] = odd if odd is not None else pa.nulls(count, pa.string())
    return pa.table(columns)


def _joined(left: pa.Array, right: pa.Array) -> pa.Array:
    return pc.coalesce(pc.binary_join_element_wise(left, right, ","), left, right)


def _join_rest(bp: pa.StringArray, scope: pa.StringArray) -> pa.Array:
    parts = []
    for name, values in (("bp", bp), ("s", scope)):
        if len(values.buffers()[2] or b"") == 0:
            continue
        parts.append(pc.binary_join_element_wise(f'"{name}":', _empty_to_null(values), ""))
    if not parts:
        return pa.nulls(len(bp), pa.string())
    joined = parts[0] if len(parts) == 1 else _joined(*parts)
    return _empty_to_null(joined)


def _empty_to_null(values: pa.StringArray) -> pa.StringArray:
    return pc.if_else(pc.equal(pc.binary_length(values), 0), pa.scalar(None, pa.string()), values)


def _words(values: pa.StringArray) -> pa.DictionaryArray:
    """Dictionary of distinct texts; strings unquoted, numbers and other JSON as their text, absent as null."""
    encoded = values.dictionary_encode()
    words = pa.array([word(text) for text in encoded.dictionary.to_pylist()], pa.string())
    if len(words.unique()) == len(words) and words.null_count == 0:
        return pa.DictionaryArray.from_arrays(encoded.indices, words)
    return words.take(encoded.indices).dictionary_encode()


def word(text: str) -> str | None:
    """A JSON value as plain text: "25738" and 25738 are the same; null and absent are None."""
    if not text or text == "null":
        return None
    if not text.startswith('"'):
        return text
    try:
        value: str = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError):
        return text[1:-1]
    return value
