"""The rows of a chunk that look as Kineto writes them, without a general JSON reader and without a Python object per row:
the places of their members give columns. What looks otherwise is left to `rows`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from explorer.collectors.kineto.nanoseconds import nanoseconds
from explorer.collectors.kineto.spans import cut_out, relabelled, words
from explorer.collectors.kineto.tokens import Tokens, Vocabulary, find_tokens

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
_FLOWS = ("s", "t", "f")
PHASES = ("X", *_FLOWS)
_UNNUMBERED = ("python_function", "ac2g")
"""Source categories whose args hold nothing that has a column."""
_SAMPLE_BYTES = 1 << 16
_INT64 = 1 << 63
_HEX = re.compile(r"0x[0-9a-fA-F]{1,15}")
_WHOLE = re.compile(r"-?[1-9][0-9]{0,17}|0")
_INTEGER = r"^-?[0-9]{1,18}$"

_TOP = ("ph", "cat", "name", "pid", "tid", "ts", "dur", "args", "id", "bp")
_NUMBERS = {
    "external_id": ("External id", "external id"),
    "correlation_id": ("correlation", "correlation_id"),
    "flops": ("flops",),
    "sequence_number": ("Sequence number",),
    "forward_thread": ("Fwd thread id",),
}
_CODES = {"stream": ("stream", "stream_id"), "device": ("device",)}
_REMOVED = ("correlation", "bytes", "Input Dims", "Input dims", "Input type")
"""Args that have a column and leave the attributes."""
_UNCOMMON = (
    "Collective name",
    "Process Group Name",
    "size(Byte)",
    "connection_id",
    "Physic Stream Id",
    "stream id",
    "Bytes",
)
"""Args that make a row one for the general reader."""
_VOCABULARY = Vocabulary(
    _TOP,
    (
        *(name for group in (_NUMBERS, _CODES) for names in group.values() for name in names),
        *_REMOVED[1:],
        "Call stack",
        *_UNCOMMON,
    ),
)
_QUOTE, _BRACE, _BRACKET = b'"{['
_LETTERS = np.full(256, -1, np.int8)
for _place, _letter in enumerate(PHASES):
    _LETTERS[ord(_letter)] = _place
_NUMERIC = np.zeros(256, bool)
_NUMERIC[list(b"-0123456789")] = True


def compact(text: bytes) -> bytes:
    """The inside of a JSON array without blanks between tokens, where it looks as if it had any."""
    sample = text[:_SAMPLE_BYTES]
    if b'": ' in sample or b', "' in sample or sample.count(b"\n") > sample.count(b"\n{"):
        return msgspec.json.format(b"[" + text + b"]", indent=-1)[1:-1]
    return text


def read_plain(text: bytes) -> tuple[dict[str, pa.Array], Flags, pa.StringArray, list[int]] | None:
    """Columns of the rows in a compact `text`, which rows they are good for, the text of the other rows, and the rows with
    repeated names; None where rows cannot be told apart.

    The columns are those of rows.sql, joined as `read_rows` gives them, except those that no plain row has (label,
    collective, args, odd, what memory events have). Rows that are not plain hold anything. Raises msgspec.DecodeError
    where the text is not strict JSON.
    """
    tokens = find_tokens(text, _VOCABULARY)
    if tokens is None:
        return None
    reading = _Reading(tokens)
    reading.read()
    other = ~reading.plain
    others = cut_out(tokens.joined, tokens.begin[other], tokens.stop[other])
    return reading.columns, reading.plain, others, tokens.repeated


@dataclass
class _Reading:
    tokens: Tokens
    columns: dict[str, pa.Array] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.count = len(self.tokens)
        self.plain = self.tokens.simple.copy()
        self.plain[self.tokens.row[self.tokens.of(_VOCABULARY.other_top)]] = False
        self.plain[np.array(self.tokens.repeated, np.int64)] = False
        self.looked_at = np.ones(self.count, bool)

    def read(self) -> None:
        """Fill the columns, unless no row is plain."""
        tokens, plain = self.tokens, self.plain
        letter = self._phase()
        plain &= letter >= 0
        if not plain.any():
            return
        flow = letter > 0
        for name in ("cat", "name", "bp"):
            self._words(name, self._once(_VOCABULARY.top[name]))
        for name in ("pid", "tid"):
            self._codes(name, self._once(_VOCABULARY.top[name]), track_part)
        for name in ("ts", "dur"):
            self._times(name)
        ident = self._once(_VOCABULARY.top["id"])
        self._numbers("ident", ident)
        marked = self.columns.pop("bp")
        other = marked.is_valid()
        if len(ident):
            self.columns["id"] = self.columns["ident"].cast(pa.string())
            other = pc.or_(other, self.columns["ident"].is_valid())
        plain &= flow | ~np.asarray(other)
        args = self._once(_VOCABULARY.top["args"])
        strange = tokens.letters[tokens.start[args]] != _BRACE
        plain[tokens.row[args]] &= ~(strange | flow[tokens.row[args]])
        categories = self.columns["cat"]
        self._skip(categories)
        self._skip_memory()
        self._arguments()
        self.columns["attributes"] = _attributes(categories, self._bodies(), letter, marked)
        self.columns["ph"] = pa.DictionaryArray.from_arrays(
            pa.array(np.maximum(letter, 0).astype(np.int32)), pa.array(PHASES, pa.string())
        )

    def _once(self, number: int) -> Ints:
        """The members of a meaning; rows that have it twice are not plain."""
        which = self.tokens.of(number)
        rows = self.tokens.row[which]
        again = rows[1:] == rows[:-1]
        if again.any():
            self.plain[rows[1:][again]] = False
            which = which[np.append(True, ~again)]
        return which

    def _inner(self, name: str) -> Ints:
        which = self._once(_VOCABULARY.inner[name])
        return which[self.looked_at[self.tokens.row[which]]]

    def _either(self, names: tuple[str, ...]) -> Ints:
        """Members of the first name, and of the second in rows that lack the first."""
        which = self._inner(names[0])
        for name in names[1:]:
            more = self._inner(name)
            if len(more):
                more = more[~np.isin(self.tokens.row[more], self.tokens.row[which])]
                which = np.sort(np.concatenate([which, more]))
        return which

    def _fit(self, which: Ints, good: Flags) -> Ints:
        """Rows of members that are not good are not plain; the others."""
        if good.all():
            return which
        self.plain[self.tokens.row[which[~good]]] = False
        return which[good]

    def _phase(self) -> npt.NDArray[np.int8]:
        tokens = self.tokens
        which = self._once(_VOCABULARY.top["ph"])
        start = tokens.start[which]
        result = np.full(self.count, -1, np.int8)
        found = _LETTERS[tokens.letters[start + 1]]
        found[(tokens.letters[start] != _QUOTE) | (tokens.end[which] != start + 3)] = -1
        result[tokens.row[which]] = found
        return result

    def _values(self, which: Ints, trim: int = 0) -> pa.StringArray:
        return cut_out(self.tokens.joined, self.tokens.start[which] + trim, self.tokens.end[which] - trim)

    def _spread(self, which: Ints, values: pa.Array) -> pa.Array:
        """Values of members as a column of all rows."""
        if len(which) == self.count:
            return values
        place = np.zeros(self.count, np.int32)
        absent = np.ones(self.count, bool)
        rows = self.tokens.row[which]
        place[rows] = np.arange(len(which), dtype=np.int32)
        absent[rows] = False
        at = pa.array(place, mask=absent)
        if isinstance(values, pa.DictionaryArray):
            return pa.DictionaryArray.from_arrays(values.indices.take(at), values.dictionary)
        return values.take(at)

    def _words(self, name: str, which: Ints) -> None:
        which = self._fit(which, self.tokens.letters[self.tokens.start[which]] == _QUOTE)
        self.columns[name] = self._spread(which, words(self._values(which, 1)))

    def _codes(self, name: str, which: Ints, meaning: Callable[[str], str | None]) -> None:
        """Values of which few are distinct, by what each means; None is unfit."""
        encoded = self._values(which).dictionary_encode()
        meanings = [meaning(text) for text in encoded.dictionary.to_pylist()]
        if None in meanings:
            unfit = np.array([value is None for value in meanings])
            self._fit(which, ~unfit[np.asarray(encoded.indices)])
        self.columns[name] = self._spread(which, relabelled(encoded, meanings))

    def _times(self, name: str) -> None:
        which = self._once(_VOCABULARY.top[name])
        which = self._fit(which, _NUMERIC[self.tokens.letters[self.tokens.start[which]]])
        exact = nanoseconds(self._values(which))
        self._fit(which, np.asarray(exact.is_valid()))
        self.columns[name] = self._spread(which, exact)

    def _numbers(self, name: str, which: Ints, quotes: bool = False) -> None:
        """Integers, with `quotes` also in quotes; what is none, or is beyond int64, is unfit."""
        if not len(which):
            return
        start, end = self.tokens.start[which], self.tokens.end[which]
        quoted = self.tokens.letters[start] == _QUOTE
        if quoted.any() and quotes:
            texts = cut_out(self.tokens.joined, start + quoted, end - quoted)
            whole = np.array(
                [_WHOLE.fullmatch(text) is not None for text in texts.filter(quoted).to_pylist()]
            )
            good = np.ones(len(which), bool)
            good[quoted] = whole
        else:
            texts, good = self._values(which), ~quoted
        if good.all():
            try:
                self.columns[name] = self._spread(which, texts.cast(pa.int64()))
                return
            except pa.ArrowInvalid:
                pass
        good &= np.asarray(pc.match_substring_regex(texts, _INTEGER))
        which, texts = self._fit(which, good), texts.filter(pa.array(good))
        self.columns[name] = self._spread(which, texts.cast(pa.int64()))

    def _skip(self, categories: pa.DictionaryArray) -> None:
        labels = categories.dictionary.to_pylist()
        table = np.array([label not in _UNNUMBERED for label in labels] + [True])
        self.looked_at = table[np.asarray(pc.fill_null(categories.indices, len(labels)))]

    def _skip_memory(self) -> None:
        names = self.columns["name"]
        memory = names.dictionary.index("[memory]").as_py()
        if memory >= 0:
            self.plain &= ~np.asarray(pc.fill_null(pc.equal(names.indices, memory), False))

    def _arguments(self) -> None:
        tokens = self.tokens
        for name in _UNCOMMON:
            self.plain[tokens.row[self._inner(name)]] = False
        for name, spellings in _NUMBERS.items():
            self._numbers(name, self._either(spellings))
        self._numbers("size_bytes", self._inner("bytes"), quotes=True)
        for name, spellings in _CODES.items():
            which = self._either(spellings)
            if len(which):
                self._codes(name, which, _number)
                self.columns[name] = self.columns[name].cast(pa.string()).cast(pa.int64())
        for name, spellings in (("shapes", ("Input Dims", "Input dims")), ("dtypes", ("Input type",))):
            which = self._either(spellings)
            for spelling in spellings[1:]:
                # Both at once are for the general reader.
                both = np.setdiff1d(self._inner(spelling), which)
                self.plain[tokens.row[both]] = False
            if len(which):
                which = self._fit(which, tokens.letters[tokens.start[which]] == _BRACKET)
                self.columns[name] = self._spread(which, self._values(which).dictionary_encode())
        which = self._inner("Call stack")
        if len(which):
            self._words("call_stack", which)

    def _bodies(self) -> pa.StringArray:
        """The args of each row without what has a column, without the opening brace; "" where there are none."""
        tokens = self.tokens
        inner = tokens.inner & tokens.simple[tokens.row]
        same = tokens.row[1:] == tokens.row[:-1]
        last = inner.copy()
        last[:-1] &= ~(inner[1:] & same)
        first = inner.copy()
        first[1:] &= ~(inner[:-1] & same)
        begin, stop = tokens.key[first], tokens.end[last] + 1
        rows = tokens.row[first]
        starts, ends = begin, stop
        gone = np.sort(np.concatenate([self._inner(name) for name in _REMOVED]))
        if len(gone):
            joint = np.zeros(len(gone), bool)
            joint[1:] = (gone[1:] == gone[:-1] + 1) & (tokens.row[gone[1:]] == tokens.row[gone[:-1]])
            head, tail = gone[~joint], gone[np.append(~joint[1:], True)]
            # Members go with the comma after them; the last ones with the comma before them.
            final = last[tail]
            cut = tokens.key[head] - (final & ~first[head])
            resume = np.where(final, tokens.end[tail], tokens.key[np.minimum(tail + 1, len(tokens.key) - 1)])
            starts, ends = np.sort(np.concatenate([begin, resume])), np.sort(np.concatenate([cut, stop]))
        pieces = cut_out(tokens.joined, starts, ends)
        sizes = np.zeros(self.count, np.int64)
        sizes[rows] = np.add.reduceat(ends - starts, np.searchsorted(starts, begin)) if len(rows) else 0
        offsets = np.zeros(self.count + 1, np.int32)
        np.cumsum(sizes, out=offsets[1:])
        data = pieces.buffers()[2] or pa.py_buffer(b"")
        return pa.StringArray.from_buffers(self.count, pa.py_buffer(offsets), data)


def track_part(text: str) -> str | None:
    """A pid or tid: an integer or a text."""
    if text.startswith('"'):
        return str(msgspec.json.decode(text))
    try:
        value = int(text)
    except ValueError:
        return None
    return str(value) if -_INT64 <= value < _INT64 else None


def _number(text: str) -> str | None:
    """An integer, or a text with a hexadecimal one."""
    if text.startswith('"'):
        return str(int(text[1:-1], 16)) if _HEX.fullmatch(text[1:-1]) else None
    return track_part(text)


def _attributes(
    categories: pa.DictionaryArray,
    insides: pa.StringArray,
    letter: npt.NDArray[np.int8],
    bp: pa.DictionaryArray,
) -> pa.StringArray:
    """The source's category, what flows have besides, and the args, as one JSON object; null where all are empty."""
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
