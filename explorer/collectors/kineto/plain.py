"""The rows of a chunk that look as Kineto writes them, read without a general JSON reader: times, numbers and texts by one
typed pass, the args as the text they are. What looks otherwise is left to `rows`."""

from __future__ import annotations

import gc
import json
import re
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from explorer.collectors.kineto.nanoseconds import nanoseconds

Raw = msgspec.Raw
Flags = npt.NDArray[np.bool_]
_NOTHING = Raw(b"")
_ABSENT: Any = None
_INT64 = 1 << 63
_FLOWS = ("s", "t", "f")
_LETTERS = {letter: number for number, letter in enumerate(("X", *_FLOWS))}
_UNNUMBERED = ("python_function", "ac2g")
"""Source categories whose args hold nothing that has a column."""
_SAMPLE_BYTES = 1 << 16
_NESTED = (b'":{', b"[{", b",{", b'": ')
_HEX = re.compile(r"0x[0-9a-fA-F]{1,15}")
_WHOLE = re.compile(r"-?[1-9][0-9]{0,17}|0")
_LONG_TIME = re.compile(rb'"ts":\s*\d{13}')


class _Row(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    ph: str = ""
    cat: str = _ABSENT
    name: str = _ABSENT
    pid: int | str = _ABSENT
    tid: int | str = _ABSENT
    ts: float = _ABSENT
    dur: float = _ABSENT
    args: Raw = _NOTHING
    id: int = _ABSENT
    bp: str = _ABSENT
    s: Raw = _ABSENT


class _LongRow(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    ph: str = ""
    cat: str = _ABSENT
    name: str = _ABSENT
    pid: int | str = _ABSENT
    tid: int | str = _ABSENT
    ts: Raw = _NOTHING
    dur: Raw = _NOTHING
    args: Raw = _NOTHING
    id: int = _ABSENT
    bp: str = _ABSENT
    s: Raw = _ABSENT


class _Args(msgspec.Struct, gc=False):
    external: int = msgspec.field(default=_ABSENT, name="External id")
    correlation: int = _ABSENT
    stream: int | str = _ABSENT
    device: int = _ABSENT
    bytes: int | str = _ABSENT
    other_external: int = msgspec.field(default=_ABSENT, name="external id")
    sequence: int = msgspec.field(default=_ABSENT, name="Sequence number")
    forward_thread: int = msgspec.field(default=_ABSENT, name="Fwd thread id")
    shapes: Raw = msgspec.field(default=_NOTHING, name="Input Dims")
    dtypes: Raw = msgspec.field(default=_NOTHING, name="Input type")
    other_shapes: Raw = msgspec.field(default=_NOTHING, name="Input dims")
    call_stack: str = msgspec.field(default=_ABSENT, name="Call stack")
    flops: int = _ABSENT
    correlation_id: int = _ABSENT
    stream_id: int = _ABSENT
    # These make a row uncommon.
    u1: Raw = msgspec.field(default=_NOTHING, name="Collective name")
    u2: Raw = msgspec.field(default=_NOTHING, name="Process Group Name")
    u3: Raw = msgspec.field(default=_NOTHING, name="size(Byte)")
    u4: Raw = msgspec.field(default=_NOTHING, name="connection_id")
    u5: Raw = msgspec.field(default=_NOTHING, name="Physic Stream Id")
    u6: Raw = msgspec.field(default=_NOTHING, name="stream id")
    u7: Raw = msgspec.field(default=_NOTHING, name="Bytes")


_ROWS = msgspec.json.Decoder(list[_Row])
_LONG_ROWS = msgspec.json.Decoder(list[_LongRow])
_ROW = msgspec.json.Decoder(_Row)
_LONG_ROW = msgspec.json.Decoder(_LongRow)
_RAWS = msgspec.json.Decoder(list[Raw])
_ARGS = msgspec.json.Decoder(_Args)
_ALL_ARGS = msgspec.json.Decoder(list[_Args])
_EMPTY = _Args()
_UNFIT = _Row(ph="?")


def compact(text: bytes) -> bytes:
    """The inside of a JSON array without blanks between tokens, where it looks as if it had any."""
    sample = text[:_SAMPLE_BYTES]
    if b'": ' in sample or b', "' in sample or sample.count(b"\n") > sample.count(b"\n{"):
        return msgspec.json.format(b"[" + text + b"]", indent=-1)[1:-1]
    return text


def read_plain(text: bytes) -> tuple[dict[str, pa.Array], Flags] | None:
    """Columns of the rows in a compact `text`, and which rows they are good for; None where hardly any row is plain.

    The columns are those of rows.sql, joined as `read_rows` gives them, except those that no plain row has (label,
    collective, args, odd, what memory events have). Rows that are not plain hold anything.
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        return _read(text)
    finally:
        if collecting:
            gc.enable()


def _read(text: bytes) -> tuple[dict[str, pa.Array], Flags] | None:
    long = _LONG_TIME.search(text[-_SAMPLE_BYTES:]) is not None
    try:
        rows: list[Any] = (_LONG_ROWS if long else _ROWS).decode(b"[" + text + b"]")
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        rows = _one_by_one(text, _LONG_ROW if long else _ROW)
    count = len(rows)
    if not count:
        return None
    letter = np.fromiter(map(_LETTERS.get, [r.ph for r in rows]), np.float32, count)
    letter = np.where(np.isnan(letter), -1, letter).astype(np.int8)
    plain = letter >= 0
    if not plain.any():
        return None
    flow = letter > 0
    try:
        ident = pa.array([r.id for r in rows], pa.int64())
    except OverflowError:
        return None
    bp = _words([r.bp for r in rows])
    plain &= flow | ~np.asarray(pc.or_(ident.is_valid(), bp.is_valid()))
    plain &= np.array([r.s is None for r in rows])

    args = [r.args for r in rows]
    stretch = _joined(args)
    if stretch is None:
        return None
    joined, offsets = stretch
    lengths = np.diff(offsets) - 1
    letters = np.frombuffer(joined + b"\n\n", np.uint8)
    begins = letters[offsets[:-1]] == ord("{")
    plain &= (lengths == 0) | (begins & ~flow & ((lengths == 2) | (letters[offsets[:-1] + 1] == ord('"'))))

    ts, good = _times([r.ts for r in rows], long)
    dur, fine = _times([r.dur for r in rows], long)
    plain &= good & fine

    categories, names = _words([r.cat for r in rows]), _words([r.name for r in rows])
    label = categories.dictionary.to_pylist()
    numberless = np.array([word in _UNNUMBERED for word in label] + [False])[
        np.asarray(pc.fill_null(categories.indices, len(label)))
    ]
    memory = np.array([word == "[memory]" for word in names.dictionary.to_pylist()] + [False])
    if memory.any():
        plain &= ~memory[np.asarray(pc.fill_null(names.indices, len(memory) - 1))]
    which = np.flatnonzero(plain & ~numberless & (lengths > 2))
    found, common = _arguments([args[i] for i in which.tolist()])
    bodies: list[Any] = args
    _without_columns(bodies, which, found, common)
    plain[which[~common]] = False
    try:
        columns = _numbers(found, which, count)
    except OverflowError:
        return None
    attributes = _attributes(categories, bodies, letter, bp)
    if attributes is None:
        return None
    phases = pa.DictionaryArray.from_arrays(
        pa.array(np.maximum(letter, 0).astype(np.int32)), pa.array(list(_LETTERS), pa.string())
    )
    columns |= {
        "ph": phases,
        "cat": categories,
        "name": names,
        "ts": ts,
        "dur": dur,
        "attributes": attributes,
    }
    columns["pid"], columns["tid"] = _texts([r.pid for r in rows]), _texts([r.tid for r in rows])
    if ident.null_count < count:
        columns["ident"], columns["id"] = ident, ident.cast(pa.string())
    return columns, plain


def _one_by_one(text: bytes, decoder: Any) -> list[Any]:
    result = []
    for raw in _RAWS.decode(b"[" + text + b"]"):
        try:
            result.append(decoder.decode(raw))
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            result.append(_UNFIT)
    return result


def _words(values: Sequence[str | None]) -> pa.DictionaryArray:
    return pa.array(values, pa.string()).dictionary_encode()


def _texts(values: Sequence[int | str | None]) -> pa.DictionaryArray:
    try:
        numbers = pa.array(values, pa.int64()).dictionary_encode()
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        return _words([None if v is None else str(v) for v in values])
    return pa.DictionaryArray.from_arrays(numbers.indices, numbers.dictionary.cast(pa.string()))


def _joined(texts: list[Any]) -> tuple[bytes, npt.NDArray[np.int32]] | None:
    """The texts with a line break between them, and where each begins (one more: where the next would); None where one of
    them has line breaks of its own."""
    joined = b"\n".join(texts)
    breaks = np.flatnonzero(np.frombuffer(joined, np.uint8) == 10)
    if len(breaks) != len(texts) - 1:
        return None
    offsets = np.zeros(len(texts) + 1, np.int32)
    offsets[1:-1] = breaks + 1
    offsets[-1] = len(joined) + 1
    return joined, offsets


def _column(texts: list[Any], drop: int = 0) -> pa.StringArray | None:
    """The texts as a column, each without its first `drop` bytes."""
    stretch = _joined(texts)
    if stretch is None:
        return None
    joined, offsets = stretch
    whole = pa.BinaryArray.from_buffers(
        pa.binary(), len(texts), [None, pa.py_buffer(offsets), pa.py_buffer(joined + b"\n")]
    )
    return pc.binary_slice(whole, drop, -1).cast(pa.string())


def _times(values: Sequence[Any], long: bool) -> tuple[pa.Array, Flags]:
    """Nanoseconds, and where they are certain: no time at all, or one whose text can mean no other integer."""
    if long:
        column = _column([_NOTHING if value is None else value for value in values])
        if column is None:
            return pa.nulls(len(values), pa.int64()), np.zeros(len(values), bool)
        exact = nanoseconds(column)
        return exact, np.asarray(pc.is_valid(exact)) | np.asarray(pc.equal(pc.binary_length(column), 0))
    read = pa.array(values, pa.float64())
    absent = np.asarray(pc.is_null(read))
    scaled = np.asarray(pc.fill_null(read, 0.0)) * 1000.0
    with np.errstate(invalid="ignore"):
        whole = np.rint(scaled)
        # The double nearest to the text and the product are each off by half a unit in the last place at most.
        certain = np.abs(scaled - whole) + np.abs(scaled) * 2.0**-51 < 0.49
    return pa.array(np.where(certain, whole, 0.0).astype(np.int64), mask=absent), certain


def _arguments(texts: list[Raw]) -> tuple[list[_Args], Flags]:
    try:
        found = _ALL_ARGS.decode(b"[" + b",".join(texts) + b"]")
        common = np.ones(len(texts), bool)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        found, flags = [], []
        for text in texts:
            try:
                found.append(_ARGS.decode(text))
                flags.append(True)
            except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
                found.append(_EMPTY)
                flags.append(False)
        common = np.array(flags, bool)
    for number, a in enumerate(found):
        if (
            a.u1 is not _NOTHING or a.u2 is not _NOTHING or a.u3 is not _NOTHING or a.u4 is not _NOTHING
            or a.u5 is not _NOTHING or a.u6 is not _NOTHING or a.u7 is not _NOTHING
            or (a.shapes is not _NOTHING and (bytes(a.shapes)[:1] != b"[" or a.other_shapes is not _NOTHING))
            or (a.dtypes is not _NOTHING and bytes(a.dtypes)[:1] != b"[")
            or (a.other_shapes is not _NOTHING and bytes(a.other_shapes)[:1] != b"[")
            or (isinstance(a.stream, str) and not _HEX.fullmatch(a.stream))
            or (isinstance(a.bytes, str) and not _WHOLE.fullmatch(a.bytes))
        ):  # fmt: skip
            common[number] = False
    return found, common


def _without_columns(
    bodies: list[Any], which: npt.NDArray[np.int64], found: list[_Args], common: Flags
) -> None:
    """Take what has a column out of the args. Objects inside them make a row uncommon: a key could be one of theirs."""
    for place, (row, a) in enumerate(zip(which.tolist(), found)):
        text = bytes(bodies[row])
        size = len(text)
        if a.correlation is not None:
            text = _cut(text, b'"correlation":%d' % a.correlation)
        if a.bytes is not None:
            text = _cut(
                text,
                b'"bytes":%d' % a.bytes if isinstance(a.bytes, int) else b'"bytes":"%s"' % a.bytes.encode(),
            )
        if a.shapes is not _NOTHING:
            text = _cut(text, b'"Input Dims":' + bytes(a.shapes))
        if a.other_shapes is not _NOTHING:
            text = _cut(text, b'"Input dims":' + bytes(a.other_shapes))
        if a.dtypes is not _NOTHING:
            text = _cut(text, b'"Input type":' + bytes(a.dtypes))
        if len(text) != size:
            if text.count(b"{") > 1 and any(mark in text for mark in _NESTED):
                common[place] = False
            bodies[row] = text


def _cut(text: bytes, member: bytes) -> bytes:
    """A JSON object without a member that it has once."""
    shorter = text.replace(member + b",", b"", 1)
    if len(shorter) < len(text):
        return shorter
    for end in (b"," + member + b"}", member + b"}"):
        if text.endswith(end):
            return text[: -len(end)] + b"}"
    return text


def _numbers(found: list[_Args], which: npt.NDArray[np.int64], count: int) -> dict[str, pa.Array]:
    """The columns that args give, for all rows."""
    columns: dict[str, pa.Array] = {}
    place = np.full(count, -1, np.int32)
    place[which] = np.arange(len(which), dtype=np.int32)
    take = pa.array(place, mask=place < 0)
    for name, values in (
        ("external_id", [a.other_external if a.external is None else a.external for a in found]),
        ("correlation_id", [a.correlation_id if a.correlation is None else a.correlation for a in found]),
        (
            "stream",
            [
                a.stream_id
                if a.stream is None
                else int(a.stream, 16)
                if isinstance(a.stream, str)
                else a.stream
                for a in found
            ],
        ),
        ("device", [a.device for a in found]),
        ("size_bytes", [int(a.bytes) if isinstance(a.bytes, str) else a.bytes for a in found]),
        ("flops", [a.flops for a in found]),
        ("sequence_number", [a.sequence for a in found]),
        ("forward_thread", [a.forward_thread for a in found]),
    ):
        column = pa.array(values, pa.int64())
        if column.null_count < len(column):
            columns[name] = column.take(take)
    for name, texts in (
        ("shapes", [bytes(a.shapes) or bytes(a.other_shapes) or None for a in found]),
        ("dtypes", [bytes(a.dtypes) or None for a in found]),
        ("call_stack", [a.call_stack for a in found]),
    ):
        words = pa.array(texts, pa.string())
        if words.null_count < len(words):
            encoded = words.dictionary_encode()
            columns[name] = pa.DictionaryArray.from_arrays(encoded.indices.take(take), encoded.dictionary)
    return columns


def _attributes(
    categories: pa.DictionaryArray, bodies: list[Any], letter: npt.NDArray[Any], bp: pa.DictionaryArray
) -> pa.Array | None:
    """The source's category, what flows have besides, and the args, as one JSON object; null where all are empty."""
    insides = _column(bodies, drop=1)
    if insides is None:
        return None
    labels, marks = categories.dictionary.to_pylist(), bp.dictionary.to_pylist()
    code = np.asarray(pc.fill_null(categories.indices, len(labels))).astype(np.int64)
    mark = np.asarray(pc.fill_null(bp.indices, len(marks))).astype(np.int64)
    key = (code * (len(_FLOWS) + 1) + np.maximum(letter, 0)) * (len(marks) + 1) + mark
    opened, closed = [], []
    for number in range((len(labels) + 1) * (len(_FLOWS) + 1) * (len(marks) + 1)):
        rest, m = divmod(number, len(marks) + 1)
        c, flow = divmod(rest, len(_FLOWS) + 1)
        members = [f'"cat":{json.dumps(labels[c], ensure_ascii=False)}'] if c < len(labels) else []
        if flow:
            members.append(f'"ph":"{_FLOWS[flow - 1]}"')
        if m < len(marks):
            members.append(f'"bp":{json.dumps(marks[m], ensure_ascii=False)}')
        opened.append("{" + "".join(f"{member}," for member in members))
        closed.append("{" + ",".join(members) + "}" if members else None)
    which = pa.array(key)
    filled = pc.binary_join_element_wise(pa.array(opened, pa.string()).take(which), insides, "")
    return pc.if_else(
        pc.less_equal(pc.binary_length(insides), 1), pa.array(closed, pa.string()).take(which), filled
    )
