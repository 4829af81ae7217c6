"""Where the members of every row lie in the text of a chunk, found by looking at all its bytes at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import numpy as np
import numpy.typing as npt

from explorer.collectors.kineto.repeats import rows_with_repeats

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
_RAWS = msgspec.json.Decoder(list[msgspec.Raw])
_QUOTE, _COLON, _OPEN, _CLOSE, _BACKSLASH, _BREAK = b'":{}\\\n'
_PADDING = b"\n" * 64
_SHIFT = np.uint64(64 - 12)
_MASKS = np.array([(1 << 8 * n) - 1 for n in range(9)], np.uint64)


class Vocabulary:
    """Member names to be told apart: those of the row itself, of at most eight letters, and those of its args. Numbers begin
    at 1, in this order."""

    def __init__(self, top: Sequence[str], inner: Sequence[str]) -> None:
        self.top = {name: number for number, name in enumerate(top, 1)}
        self.inner = {name: number for number, name in enumerate(inner, len(top) + 1)}
        self.other_top = len(top) + len(inner) + 1
        names = list(dict.fromkeys((*top, *inner)))
        self.words = [b"", *(name.encode() for name in names)]
        meaning = np.zeros((2, len(self.words)), np.uint8)
        meaning[0] = self.other_top
        for place, name in enumerate(names, 1):
            meaning[:, place] = self.top.get(name, self.other_top), self.inner.get(name, 0)
        self.meaning = meaning.ravel()
        self.lengths = np.array([len(word) for word in self.words])
        self.lengths[0] = -1
        self.beginnings = np.array([int.from_bytes(w[:8], "little") for w in self.words], np.uint64)
        self.long = [(n, name.encode()) for name, n in self.inner.items() if len(name) > 8]
        self.factor, self.table = self._perfect()

    def _perfect(self) -> tuple[np.uint64, npt.NDArray[np.uint8]]:
        """A factor under which length and first eight letters of each word lead to a slot of its own; the words by slot."""
        random = np.random.default_rng(1)
        while True:
            factor = random.integers(1, 1 << 63, dtype=np.uint64) | np.uint64(1)
            slots = ((self.beginnings + self.lengths.view(np.uint64))[1:] * factor) >> _SHIFT
            if len(np.unique(slots)) == len(slots):
                table = np.zeros(1 << 12, np.uint8)
                table[slots] = np.arange(1, len(self.words))
                return factor, table


@dataclass
class Tokens:
    """The members of the rows of a chunk, in the order of the text.

    `joined` holds the rows with a line break between them, `letters` the same as numbers with some padding. Arrays `key`
    (its opening quote), `start` and `end` (of its value) and `row` have one entry per member. `of` gives the members of one
    meaning. Only rows that are `simple` have any: an object whose only object inside, if any, is args.
    """

    joined: bytes
    letters: npt.NDArray[np.uint8]
    begin: Ints
    """First byte of each row"""
    stop: Ints
    """Byte after each row"""
    simple: Flags
    key: Ints
    start: Ints
    end: Ints
    row: Ints
    inner: Flags
    order: Ints
    """Members sorted by meaning"""
    bounds: Ints
    repeated: list[int]
    """Rows in which an object has a name twice"""

    def __len__(self) -> int:
        return len(self.begin)

    def of(self, number: int) -> Ints:
        """Positions of the members with a meaning, ascending."""
        return self.order[self.bounds[number] : self.bounds[number + 1]]


def find_tokens(text: bytes, vocabulary: Vocabulary) -> Tokens | None:
    """Read the inside of a strict, compact JSON array. None where a row has line breaks or there is none.

    Raises msgspec.DecodeError where it is not strict JSON.
    """
    raws = _RAWS.decode(b"[" + text + b"]")
    count = len(raws)
    joined = b"\n".join([*raws, _PADDING])
    del raws
    letters = np.frombuffer(joined, np.uint8)
    size = len(joined) - len(_PADDING)
    breaks = np.flatnonzero(letters[:size] == _BREAK)
    if not count or len(breaks) != count:
        return None
    begin = np.zeros(count, np.int64)
    begin[1:] = breaks[:-1] + 1
    escapes = b"\\" in joined
    quotes = _quotes(letters[:size], escapes)
    opening, closing = quotes[::2], quotes[1::2]
    named = letters[closing + 1] == _COLON
    key, close = opening[named], closing[named]
    del quotes, opening, closing, named

    first = np.searchsorted(key, begin)
    members = np.diff(first, append=len(key))
    row = np.repeat(np.arange(count), members)
    opens = letters[key - 1] == _OPEN
    closes = (letters[key - 2] == _CLOSE) & ~opens & (letters[key - 3] != _OPEN)
    level = np.zeros(len(key) + 1, np.int32)
    np.cumsum(opens.view(np.int8) - closes.view(np.int8), out=level[1:])
    opened = np.zeros(len(key) + 1, np.int32)
    np.cumsum(opens, out=opened[1:])
    ending = np.append(first[1:], len(key))
    objects = opened[ending] - opened[first]
    depth = level[1:] - np.repeat(level[first], members)
    inner = depth == 2
    # A value ends before the comma and the quote of the next name, less the brace that closes args.
    end = np.empty(len(key), np.int64)
    end[:-1] = key[1:] - 1 - closes[1:]
    last = ending[members > 0] - 1
    end[last] = breaks[row[last]] - 1 - inner[last]

    meaning, order, bounds, code = _meanings(letters, key, close, inner, vocabulary)
    simple = (members > 0) & (objects <= 2)
    simple[row[first[members > 0]]] &= key[first[members > 0]] == begin[members > 0] + 1
    # The object inside must be the value of args, and nothing but names follows it.
    entered = np.flatnonzero(opens & inner)
    if len(entered):
        holder = entered - 1
        wrong = (meaning[holder] != vocabulary.top["args"]) | (letters[close[holder] + 2] != _OPEN)
        simple[row[entered[wrong]]] = False
    within = np.bincount(row[entered], minlength=count)
    simple &= within == objects - 1
    if not simple.all():
        meaning[~simple[row]] = 0
        order = np.argsort(meaning, kind="stable")
        bounds = np.searchsorted(meaning[order], np.arange(vocabulary.other_top + 2))
    code ^= depth.astype(np.uint64) << np.uint64(40)
    escaped = np.unique(row[_escaped(letters[:size], key, close)]) if escapes else np.empty(0, np.int64)
    repeated = rows_with_repeats(joined, begin, breaks, code, first, members, escaped)
    return Tokens(
        joined, letters, begin, breaks, simple, key, close + 2, end, row, inner, order, bounds, repeated
    )


def _quotes(letters: npt.NDArray[np.uint8], escapes: bool) -> Ints:
    """Positions of the quotes that begin and end texts, in turn."""
    quotes = np.flatnonzero(letters == _QUOTE)
    if not escapes:
        return quotes
    doubtful = np.flatnonzero(letters[quotes - 1] == _BACKSLASH)
    place, run = quotes[doubtful], np.ones(len(doubtful), np.int64)
    going = np.arange(len(doubtful))
    while len(going):
        going = going[letters[place[going] - run[going] - 1] == _BACKSLASH]
        run[going] += 1
    kept = np.ones(len(quotes), bool)
    kept[doubtful[run % 2 == 1]] = False
    return quotes[kept]


def _escaped(letters: npt.NDArray[np.uint8], key: Ints, close: Ints) -> Ints:
    """The members whose names are written with a backslash."""
    if not len(key):
        return np.empty(0, np.int64)
    places = np.flatnonzero(letters == _BACKSLASH)
    member = np.searchsorted(key, places) - 1
    return member[(member >= 0) & (places < close[member])]


def _meanings(
    letters: npt.NDArray[np.uint8], key: Ints, close: Ints, inner: Flags, vocabulary: Vocabulary
) -> tuple[npt.NDArray[np.uint8], Ints, Ints, npt.NDArray[np.uint64]]:
    """What each member is; the members sorted by that; where in this order each meaning begins; a hash of length and first
    eight letters of each."""
    length = close - key - 1
    beginning = np.ndarray((len(letters) - 8,), "<u8", letters, 0, (1,))[key + 1]
    beginning &= _MASKS.take(length, mode="clip")
    mixed = beginning + length.view(np.uint64)
    mixed *= vocabulary.factor
    word = vocabulary.table.take(mixed >> _SHIFT)
    word *= vocabulary.beginnings.take(word) == beginning
    word *= vocabulary.lengths.take(word) == length
    meaning = vocabulary.meaning.take(word + inner * np.uint8(len(vocabulary.words)))
    order = np.argsort(meaning, kind="stable")
    bounds = np.searchsorted(meaning[order], np.arange(vocabulary.other_top + 2))
    changed = False
    for number, spelling in vocabulary.long:
        which = order[bounds[number] : bounds[number + 1]]
        same = np.ones(len(which), bool)
        for place, letter in enumerate(spelling[8:], 9):
            same &= letters[key[which] + place] == letter
        if not same.all():
            meaning[which[~same]] = 0
            changed = True
    if changed:
        order = np.argsort(meaning, kind="stable")
        bounds = np.searchsorted(meaning[order], np.arange(vocabulary.other_top + 2))
    return meaning, order, bounds, mixed
