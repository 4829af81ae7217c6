"""Reading pickles of plain data as a stream: no code can run, because the operations that could do not exist here.

Operations as documented in Python's pickletools. Only those that build None, booleans, numbers, text, bytes, lists,
tuples, dictionaries and sets are known; any other stops the reading. Finished batches of list items are offered to a
callback, which may take them, so that a list of millions of records never stands in memory whole.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Any

MAX_TEXT_BYTES = 256 << 20
MAX_NUMBER_BYTES = 1024

TakeItems = Callable[[list[Any], list[Any], list[Any], list[list[Any]]], bool]
"""Called with (list, new items, stack below, outer stacks) before items are appended; True: taken, do not append."""


class PickleRefused(Exception):
    """The pickle asks for something else than plain data."""


class PickleBroken(Exception):
    """The pickle is cut off or malformed. `pending` holds items read but not yet placed; `offset` is where it ended."""

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(message)
        self.offset = offset


_CODE = {
    ord("c"): "GLOBAL",
    ord("\x93"): "STACK_GLOBAL",
    ord("R"): "REDUCE",
    ord("b"): "BUILD",
    ord("i"): "INST",
    ord("o"): "OBJ",
    ord("\x81"): "NEWOBJ",
    ord("\x92"): "NEWOBJ_EX",
    ord("P"): "PERSID",
    ord("Q"): "BINPERSID",
    ord("\x82"): "EXT1",
    ord("\x83"): "EXT2",
    ord("\x84"): "EXT4",
    ord("\x97"): "NEXT_BUFFER",
    ord("\x98"): "READONLY_BUFFER",
}


class _Reader:
    """Bytes of a block iterator, by length or by line."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks = blocks
        self.data = b""
        self.place = 0
        self._passed = 0

    @property
    def offset(self) -> int:
        return self._passed + self.place

    def read(self, size: int) -> bytes:
        end = self.place + size
        if end <= len(self.data):
            found = self.data[self.place : end]
            self.place = end
            return found
        return self._read_over(size)

    def _read_over(self, size: int) -> bytes:
        parts = [self.data[self.place :]]
        missing = size - len(parts[0])
        self._passed += len(self.data)
        self.data, self.place = b"", 0
        while missing > 0:
            block = next(self._blocks, None)
            if block is None:
                raise PickleBroken("it ends early", self.offset)
            parts.append(block[:missing])
            if len(block) > missing:
                self.data, self.place = block, missing
            else:
                self._passed += len(block)
            missing -= len(block)
        return b"".join(parts)

    def line(self, limit: int = 65_536) -> bytes:
        found = bytearray()
        while (byte := self.read(1)) != b"\n":
            found += byte
            if len(found) > limit:
                raise PickleBroken("a line is too long", self.offset)
        return bytes(found)


class PlainPickle:
    """One pickle being read. After `PickleBroken`, `stack` and `outer` hold what was built so far."""

    def __init__(self, blocks: Iterator[bytes], take: TakeItems | None = None) -> None:
        self._reader = _Reader(blocks)
        self._take = take
        self._memo: list[Any] = []
        self._odd_memo: dict[int, Any] = {}
        self._marks: list[int] = []
        self._marked = 0
        """Size of the memo when the mark was set whose items are being used"""
        self.stack: list[Any] = []
        self.outer: list[list[Any]] = []

    def load(self) -> Any:
        """The object. Raises PickleRefused for anything but plain data and PickleBroken for a damaged pickle."""
        reader = self._reader
        read = reader.read
        actions = _ACTIONS
        try:
            while True:
                reader.place = self._frequent(reader.data, reader.place)
                code = read(1)[0]
                if code == 0x2E:
                    return self.stack.pop()
                action = actions.get(code)
                if action is None:
                    if code in _CODE:
                        raise PickleRefused(f"operation {_CODE[code]} at byte {reader.offset - 1}")
                    raise PickleBroken(f"byte {code:#04x} is no pickle operation", reader.offset - 1)
                action(self, read)
        except (
            IndexError,
            KeyError,
            TypeError,
            ValueError,
            UnicodeDecodeError,
            struct.error,
            OverflowError,
        ) as error:
            raise PickleBroken(f"it is malformed ({error})", reader.offset) from error

    def _frequent(self, data: bytes, place: int) -> int:
        """Do the operations that records consist of, without a call each, up to one of another kind or the end of the block.

        Returns the place behind them.
        """
        stack, memo = self.stack, self._memo
        end = len(data) - 9
        while place < end:
            code = data[place]
            if code == 0x68:  # BINGET
                stack.append(memo[data[place + 1]])
                place += 2
            elif code == 0x6A:  # LONG_BINGET
                stack.append(memo[_uint4.unpack_from(data, place + 1)[0]])
                place += 5
            elif code == 0x94:  # MEMOIZE
                memo.append(stack[-1])
                place += 1
            elif code == 0x8A and data[place + 1] <= 7:  # LONG1
                size = data[place + 1]
                stack.append(int.from_bytes(data[place + 2 : place + 2 + size], "little", signed=True))
                place += 2 + size
            elif code == 0x4B:  # BININT1
                stack.append(data[place + 1])
                place += 2
            elif code == 0x4D:  # BININT2
                stack.append(data[place + 1] | data[place + 2] << 8)
                place += 3
            elif code == 0x4A:  # BININT
                stack.append(_int4.unpack_from(data, place + 1)[0])
                place += 5
            elif code == 0x7D:  # EMPTY_DICT
                stack.append({})
                place += 1
            elif code == 0x28:  # MARK
                self.outer.append(stack)
                self._marks.append(len(memo))
                stack = self.stack = []
                place += 1
            elif code == 0x75:  # SETITEMS
                items = self._items()
                stack = self.stack
                self._set(items)
                place += 1
            elif code == 0x4E:  # NONE
                stack.append(None)
                place += 1
            else:
                break
        return place

    def _sized(self, size: int) -> bytes:
        if not 0 <= size <= MAX_TEXT_BYTES:
            raise PickleBroken(f"a text of {size} bytes is too long", self._reader.offset)
        return self._reader.read(size)

    def _items(self) -> list[Any]:
        items = self.stack
        self.stack = self.outer.pop()
        self._marked = self._marks.pop()
        return items

    def _append(self, items: list[Any], since: int) -> None:
        target = self.stack[-1]
        if not isinstance(target, list):
            raise TypeError("append to something that is no list")
        if self._take is None or not self._take(target, items, self.stack, self.outer):
            target.extend(items)
            return
        # Taken items are let go: the memo forgets them (nothing refers to a record twice).
        taken = set(map(id, items))
        memo = self._memo
        for place in range(since, len(memo)):
            if id(memo[place]) in taken:
                memo[place] = None

    def _append_items(self) -> None:
        items = self._items()
        self._append(items, self._marked)

    def _set(self, items: list[Any]) -> None:
        target = self.stack[-1]
        if not isinstance(target, dict) or len(items) % 2:
            raise TypeError("a key without a value, or no dictionary")
        for place in range(0, len(items), 2):
            target[items[place]] = items[place + 1]

    def _get(self, place: int) -> None:
        self.stack.append(self._memo[place] if 0 <= place < len(self._memo) else self._odd_memo[place])

    def _put(self, place: int) -> None:
        value = self.stack[-1]
        if place == len(self._memo):
            self._memo.append(value)
        elif 0 <= place < len(self._memo):
            self._memo[place] = value
        else:
            self._odd_memo[place] = value


_Read = Callable[[int], bytes]
_Action = Callable[[PlainPickle, _Read], None]
_int1, _int2, _int4 = struct.Struct("<B"), struct.Struct("<H"), struct.Struct("<i")
_uint4, _uint8, _float8 = struct.Struct("<I"), struct.Struct("<Q"), struct.Struct(">d")


def _push(make: Callable[[PlainPickle, _Read], Any]) -> _Action:
    def action(state: PlainPickle, read: _Read) -> None:
        state.stack.append(make(state, read))

    return action


def _long(state: PlainPickle, read: _Read, size: int) -> int:
    if not 0 <= size <= MAX_NUMBER_BYTES:
        raise ValueError("a number is too long")
    return int.from_bytes(read(size), "little", signed=True)


def _text_number(state: PlainPickle, read: _Read) -> Any:
    text = state._reader.line(4096).rstrip(b"L").decode("ascii")
    return {"00": False, "01": True}.get(text) if text in ("00", "01") else int(text)


def _mark(state: PlainPickle, read: _Read) -> None:
    state.outer.append(state.stack)
    state._marks.append(len(state._memo))
    state.stack = []


def _pop(state: PlainPickle, read: _Read) -> None:
    if state.stack:
        state.stack.pop()
    else:
        state._items()


def _pop_mark(state: PlainPickle, read: _Read) -> None:
    state._items()


def _replace_top(count: int) -> _Action:
    def action(state: PlainPickle, read: _Read) -> None:
        items = tuple(state.stack[-count:])
        if len(items) != count:
            raise IndexError("stack is too short")
        del state.stack[-count:]
        state.stack.append(items)

    return action


def _from_items(make: Callable[[list[Any]], Any]) -> _Action:
    def action(state: PlainPickle, read: _Read) -> None:
        items = state._items()
        state.stack.append(make(items))

    return action


def _pairs(items: list[Any]) -> dict[Any, Any]:
    if len(items) % 2:
        raise TypeError("a key without a value")
    return dict(zip(items[::2], items[1::2]))


def _append_one(state: PlainPickle, read: _Read) -> None:
    item = state.stack.pop()
    state._append([item], len(state._memo))


def _set_one(state: PlainPickle, read: _Read) -> None:
    value, key = state.stack.pop(), state.stack.pop()
    state._set([key, value])


def _add_items(state: PlainPickle, read: _Read) -> None:
    items = state._items()
    state.stack[-1].update(items)


def _ascii(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _utf8(data: bytes) -> str:
    return data.decode("utf-8", "surrogatepass")


def _ignore(size: int) -> _Action:
    def action(state: PlainPickle, read: _Read) -> None:
        read(size)

    return action


_ACTIONS: dict[int, _Action] = {
    0x80: _ignore(1),
    0x95: _ignore(8),
    ord("("): _mark,
    ord("0"): _pop,
    ord("1"): _pop_mark,
    ord("2"): lambda s, r: s.stack.append(s.stack[-1]),
    ord("N"): _push(lambda s, r: None),
    0x88: _push(lambda s, r: True),
    0x89: _push(lambda s, r: False),
    ord("I"): _push(_text_number),
    ord("L"): _push(_text_number),
    ord("J"): _push(lambda s, r: _int4.unpack(r(4))[0]),
    ord("K"): _push(lambda s, r: r(1)[0]),
    ord("M"): _push(lambda s, r: _int2.unpack(r(2))[0]),
    0x8A: _push(lambda s, r: _long(s, r, r(1)[0])),
    0x8B: _push(lambda s, r: _long(s, r, _int4.unpack(r(4))[0])),
    ord("F"): _push(lambda s, r: float(s._reader.line(4096))),
    ord("G"): _push(lambda s, r: _float8.unpack(r(8))[0]),
    ord("S"): _push(lambda s, r: _ascii(s._reader.line().strip()[1:-1])),
    ord("V"): _push(lambda s, r: s._reader.line().decode("raw-unicode-escape")),
    ord("T"): _push(lambda s, r: _ascii(s._sized(_int4.unpack(r(4))[0]))),
    ord("U"): _push(lambda s, r: _ascii(r(r(1)[0]))),
    ord("X"): _push(lambda s, r: _utf8(s._sized(_uint4.unpack(r(4))[0]))),
    0x8C: _push(lambda s, r: _utf8(r(r(1)[0]))),
    0x8D: _push(lambda s, r: _utf8(s._sized(_uint8.unpack(r(8))[0]))),
    ord("B"): _push(lambda s, r: s._sized(_uint4.unpack(r(4))[0])),
    ord("C"): _push(lambda s, r: r(r(1)[0])),
    0x8E: _push(lambda s, r: s._sized(_uint8.unpack(r(8))[0])),
    0x96: _push(lambda s, r: s._sized(_uint8.unpack(r(8))[0])),
    ord("]"): _push(lambda s, r: []),
    ord("}"): _push(lambda s, r: {}),
    ord(")"): _push(lambda s, r: ()),
    0x8F: _push(lambda s, r: set()),
    ord("a"): _append_one,
    ord("e"): lambda s, r: s._append_items(),
    ord("l"): _from_items(list),
    ord("t"): _from_items(tuple),
    ord("d"): _from_items(_pairs),
    0x91: _from_items(frozenset),
    0x85: _replace_top(1),
    0x86: _replace_top(2),
    0x87: _replace_top(3),
    ord("s"): _set_one,
    ord("u"): lambda s, r: s._set(s._items()),
    0x90: _add_items,
    ord("g"): lambda s, r: s._get(int(s._reader.line(32))),
    ord("h"): lambda s, r: s._get(r(1)[0]),
    ord("j"): lambda s, r: s._get(_uint4.unpack(r(4))[0]),
    ord("p"): lambda s, r: s._put(int(s._reader.line(32))),
    ord("q"): lambda s, r: s._put(r(1)[0]),
    ord("r"): lambda s, r: s._put(_uint4.unpack(r(4))[0]),
    0x94: lambda s, r: s._put(len(s._memo)),
}
