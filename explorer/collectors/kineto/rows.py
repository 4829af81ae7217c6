"""A chunk of events with every field in its column. DuckDB reads the JSON; times are taken from the text itself."""

from __future__ import annotations

import json
import threading
from decimal import Decimal, InvalidOperation
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from explorer.collectors.kineto.hierarchy import with_hierarchies
from explorer.collectors.kineto.light import LONGEST, UNREAD
from explorer.collectors.kineto.nanoseconds import nanoseconds
from explorer.collectors.kineto.numerals import WIDTH, key_ends, numerals
from explorer.collectors.kineto.plain import compact, read_plain
from explorer.collectors.kineto.repeats import last_counts
from explorer.collectors.kineto.scanning import scan

if TYPE_CHECKING:
    import duckdb

_PIECES = msgspec.json.Decoder(list[msgspec.Raw])
WORDS = ("ph", "cat", "name", "pid", "tid", "call_stack", "shapes", "dtypes")
"""Columns with few distinct texts, kept as dictionaries."""
REPEATED = b"repeated"
"""Key of a chunk's metadata that `repeats_of` reads."""


class _Times(msgspec.Struct):
    ts: msgspec.Raw = msgspec.Raw(b"")
    dur: msgspec.Raw = msgspec.Raw(b"")


_WORD = pa.dictionary(pa.int32(), pa.string())
_TEXTS = ("id", "label", "args", "odd", "attributes")
_COLUMNS = (
    "ph", "cat", "name", "pid", "tid", "id", "ident", "correlation_id", "external_id", "stream", "device", "size_bytes",
    "flops", "shapes", "dtypes", "sequence_number", "forward_thread", "call_stack", "address", "allocated_bytes",
    "reserved_bytes", "device_type", "memory_device", "label", "collective", "args", "odd", "attributes", "ts", "dur",
)  # fmt: skip


def _type_of(name: str) -> pa.DataType:
    if name in WORDS:
        return _WORD
    if name == "collective":
        return pa.list_(pa.string())
    return pa.string() if name in _TEXTS else pa.int64()


_LINKS = ("ident", "external_id", "stream", "device", "sequence_number", "forward_thread", "call_stack")
"""Columns that only links are made of."""
_local = threading.local()
_known_nulls: dict[pa.DataType, pa.Array] = {}
SCHEMA = pa.schema([(name, _type_of(name)) for name in _COLUMNS])
"""Columns of a chunk."""


def read_rows(text: bytes) -> pa.Table:
    """The events in `text`, the inside of a strict JSON array, with the columns of rows.sql.

    ts and dur are int64 ns (null where absent or no number); ident is the id as a number (its own where it is one, else
    a hash); rest and body are joined to attributes; words are dictionaries. Rows as Kineto writes them are read by the
    compiled scanner, or without it by `read_plain`, all others by DuckDB.
    """
    scanned = scan(text)
    if scanned is None or len(scanned.other) == scanned.count:
        rows, repeated = _unscanned(text)
        offset = _offset(text, repeated[0]) if repeated else 0
    else:
        rows = _complete(scanned.columns, scanned.count)
        repeated, offset = [], 0
        if len(scanned.other):
            bounds = zip(scanned.begin.tolist(), scanned.stop.tolist())
            others, repeated = _unscanned(b",".join(text[begin:stop] for begin, stop in bounds))
            offset = int(scanned.begin[repeated[0]]) if repeated else 0
            plain = np.ones(scanned.count, bool)
            plain[scanned.other] = False
            rows = _merged(rows, others, plain)
    if repeated:
        rows = rows.replace_schema_metadata({REPEATED: f"{len(repeated)} {offset}"})
    # The search of the text costs more than the scanner's count.
    if scanned is not None and not scanned.has_hierarchies and not len(scanned.other):
        return rows
    return with_hierarchies(rows, text)


def _unscanned(text: bytes) -> tuple[pa.Table, list[int]]:
    """The events without the compiled scanner, and which of them have repeated names."""
    compacted = compact(text)
    found = read_plain(compacted)
    if found is None:
        # Blanks where the beginning of the chunk had none.
        compacted = msgspec.json.format(b"[" + text + b"]", indent=-1)[1:-1]
        found = read_plain(compacted)
    if found is None:
        return _general(_pieces(compacted)), []
    columns, plain, others, repeated = found
    if repeated:
        others = _with_last_counts(others, plain, repeated)
    if not plain.any():
        return _general(others), repeated
    rows = _complete(columns, len(plain))
    if not plain.all():
        rows = _merged(rows, _general(others), plain)
    return rows, repeated


def _complete(columns: dict[str, pa.Array], count: int) -> pa.Table:
    return pa.table([columns[f.name] if f.name in columns else _nulls(f.type, count) for f in SCHEMA], SCHEMA)


def _nulls(kind: pa.DataType, count: int) -> pa.Array:
    """Nulls whose memory all chunks share."""
    known = _known_nulls.get(kind)
    if known is None or len(known) < count:
        known = _known_nulls[kind] = pa.nulls(count + (count >> 1), kind)
    return known.slice(0, count)


def without_links(rows: pa.Table) -> pa.Table:
    """The rows without the numbers that only links are made of, which `distil` has taken."""
    for name in _LINKS:
        place = SCHEMA.get_field_index(name)
        rows = rows.set_column(place, SCHEMA.field(place), _nulls(SCHEMA.field(place).type, len(rows)))
    return rows


def repeats_of(rows: pa.Table) -> tuple[int, int]:
    """How many rows of a chunk have repeated names, and the first byte of the first in the chunk's text."""
    count, offset = ((rows.schema.metadata or {}).get(REPEATED) or b"0 0").split()
    return int(count), int(offset)


def _with_last_counts(others: pa.StringArray, plain: npt.NDArray[np.bool_], repeated: list[int]) -> pa.Array:
    """The rows that are not plain, with each name once."""
    texts = others.to_pylist()
    for place in (np.cumsum(~plain)[repeated] - 1).tolist():
        texts[place] = last_counts(texts[place])
    return pa.array(texts, pa.string())


def _offset(text: bytes, row: int) -> int:
    return text.find(bytes(_PIECES.decode(b"[" + text + b"]")[row]))


def _merged(rows: pa.Table, others: pa.Table, plain: npt.NDArray[np.bool_]) -> pa.Table:
    """Plain rows and the others in their order."""
    count = len(plain)
    order = np.empty(count, np.int64)
    order[np.flatnonzero(plain)] = np.arange(plain.sum())
    order[np.flatnonzero(~plain)] = np.arange(plain.sum(), count)
    both = pa.concat_tables([rows.filter(pa.array(plain)), others]).unify_dictionaries().combine_chunks()
    return both.take(pa.array(order)).combine_chunks()


def _general(raw: pa.StringArray) -> pa.Table:
    """Events of any kind, one JSON text each."""
    pieces = pa.table({"piece": raw})
    try:
        found = _query(pieces)
    except _duckdb_error():
        found = pa.concat_tables([_query(part) for part in _readable(pieces)])
    columns = {name: _flat(found.column(name)) for name in found.column_names}
    ts, dur = _exact(columns, raw)
    for name in WORDS:
        columns[name] = columns[name].dictionary_encode()
    columns["attributes"] = _attributes(columns["cat"], columns.pop("rest"), columns.pop("body"))
    for name, exact in (("ts", ts), ("dur", dur)):
        unread = np.asarray(pc.and_(pc.is_null(exact), columns[f"has_{name}"]))
        if unread.any():
            columns["attributes"] = _remember(columns["attributes"], name, unread, raw)
            if name == "dur":
                dur = _unread_durations(dur, unread, raw)
    columns["ts"], columns["dur"] = ts, dur
    return pa.table([columns[f.name].cast(f.type) for f in SCHEMA], SCHEMA)


def _pieces(text: bytes) -> pa.StringArray:
    """One event per value, on one line. Raw line breaks stand between tokens only: inside strings they are no JSON."""
    raws = _PIECES.decode(b"[" + text.replace(b"\n", b" ") + b"]")
    count = len(raws)
    joined = b"\n".join(raws)
    offsets = np.zeros(count + 1, np.int32)
    if count:
        offsets[1:-1] = np.flatnonzero(np.frombuffer(joined, np.uint8) == 10) + 1
        offsets[-1] = len(joined)
    return pa.StringArray.from_buffers(count, pa.py_buffer(offsets), pa.py_buffer(joined))


def _connection() -> duckdb.DuckDBPyConnection:
    """This thread's own."""
    import duckdb

    found: duckdb.DuckDBPyConnection | None = getattr(_local, "connection", None)
    if found is not None:
        return found
    _local.connection = connection = duckdb.connect()
    connection.execute("SET threads = 1")
    connection.execute("SET memory_limit = '512MB'")
    connection.execute("SET enable_external_access = false")
    return connection


@cache
def _sql() -> str:
    return Path(__file__).with_name("rows.sql").read_text()


def _duckdb_error() -> type[Exception]:
    import duckdb

    return duckdb.Error


def _query(pieces: pa.Table) -> pa.Table:
    connection = _connection()
    connection.register("pieces", pieces)
    try:
        return connection.sql(_sql()).to_arrow_table()
    finally:
        connection.unregister("pieces")


def _readable(pieces: pa.Table) -> list[pa.Table]:
    """Row by row where one document is refused by DuckDB's JSON reader: that one is wrapped as a text."""
    connection = _connection()
    result = []
    for piece in pieces.column("piece").to_pylist():
        try:
            found = connection.execute("SELECT json_valid(?)", [piece]).fetchone()
            valid = bool(found and found[0])
        except _duckdb_error():
            valid = False
        result.append(piece if valid else msgspec.json.encode(piece).decode())
    return [pa.table({"piece": pa.array(result, pa.string())})]


def _flat(column: pa.ChunkedArray) -> pa.Array:
    combined = column.combine_chunks()
    if isinstance(combined, pa.ChunkedArray):
        return combined.chunk(0) if combined.num_chunks else pa.array([], combined.type)
    return combined


def _exact(columns: dict[str, pa.Array], raw: pa.StringArray) -> tuple[pa.Array, pa.Array]:
    """Times from their text. Where the key does not occur exactly once (a `ts` inside args), the piece is read again."""
    if not len(raw):
        return pa.array([], pa.int64()), pa.array([], pa.int64())
    starts = np.frombuffer(raw.buffers()[1], np.int32)[: len(raw)].astype(np.int64)
    joined = np.concatenate([np.frombuffer(raw.buffers()[2], np.uint8), np.zeros(WIDTH + 4, np.uint8)])
    ends = key_ends(joined)
    texts = []
    for name in ("ts", "dur"):
        text, times = numerals(joined, ends, starts, name.encode())
        has = np.asarray(columns[f"has_{name}"])
        size = np.asarray(pc.binary_length(text))
        doubtful = np.flatnonzero(has & ((times != 1) | (size == 0) | (size >= WIDTH - 1)))
        if not has.all():
            text = pc.if_else(pa.array(has), text, pa.scalar(None, pa.string()))
        if len(doubtful):
            found = text.to_pylist()
            for row in doubtful.tolist():
                found[row] = _read_again(raw[row].as_py(), name)
            text = pa.array(found, pa.string())
        texts.append(nanoseconds(text))
    return texts[0], texts[1]


def _read_again(piece: str, name: str) -> str | None:
    try:
        times = msgspec.json.decode(piece, type=_Times)
    except msgspec.MsgspecError:
        return None
    return bytes(getattr(times, name)).decode() or None


def _unread_durations(durations: pa.Array, which: npt.NDArray[np.bool_], raw: pa.StringArray) -> pa.Array:
    """Those beyond int64 as the longest or as a negative one, which no event has; those that are no number as UNREAD."""
    values = durations.to_pylist()
    for row in np.flatnonzero(which).tolist():
        try:
            number = Decimal((_read_again(raw[row].as_py(), "dur") or "").strip('" '))
        except InvalidOperation:
            number = Decimal("NaN")
        values[row] = UNREAD if not number.is_finite() else -1 if number < 0 else LONGEST
    return pa.array(values, pa.int64())


def _remember(attributes: pa.Array, name: str, which: np.ndarray, raw: pa.StringArray) -> pa.Array:
    """Keep a time that is no number as it was written."""
    texts = attributes.to_pylist()
    for row in np.flatnonzero(which).tolist():
        member = f'"{name}":{_read_again(raw[row].as_py(), name) or "null"}'
        old = texts[row] or "{}"
        texts[row] = "{" + member + ("," if len(old) > 2 else "") + old[1:]
    return pa.array(texts, pa.string())


def _attributes(category: pa.DictionaryArray, rest: pa.StringArray, body: pa.StringArray) -> pa.StringArray:
    """The source's category and two JSON objects as one; null where all are empty."""
    labels = [f'"cat":{json.dumps(text, ensure_ascii=False)}' for text in category.dictionary.to_pylist()]
    parts = [pa.array(labels, pa.string()).take(category.indices)]
    parts += [_inside(part) for part in (rest, body) if part.null_count < len(part)]
    joined = parts[0]
    for part in parts[1:]:
        joined = pc.coalesce(pc.binary_join_element_wise(joined, part, ","), joined, part)
    return pc.binary_join_element_wise("{", joined, "}", "").cast(pa.string())


def _inside(objects: pa.StringArray) -> pa.Array:
    """JSON objects without their braces, null where empty."""
    text = pc.binary_slice(objects.cast(pa.binary()), 1, -1)
    blank = pc.less_equal(pc.binary_length(objects), 2)
    return pc.if_else(blank, pa.scalar(None, pa.binary()), text).cast(pa.string())
