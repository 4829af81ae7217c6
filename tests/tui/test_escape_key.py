"""Escape is told from the beginning of a sequence."""

from __future__ import annotations

import os
import selectors

import pytest

from explorer.tui.escape_key import ESCAPE_SECONDS, SoonAgain


def test_only_the_wait_right_behind_input_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float | None] = []
    library = selectors.SelectSelector.select

    def select(self: selectors.SelectSelector, timeout: float | None = None) -> object:
        waited.append(timeout)
        return library(self, 0)

    monkeypatch.setattr(selectors.SelectSelector, "select", select)
    read, write = os.pipe()
    selector = SoonAgain()
    selector.register(read, selectors.EVENT_READ)
    os.write(write, b"\x1b")
    assert [key.fd for key, _ in selector.select(0.1)] == [read]
    os.read(read, 1)
    assert selector.select(0.1) == []
    assert selector.select(0.1) == []
    assert waited == [0.1, ESCAPE_SECONDS, 0.1]
    selector.close()
    os.close(read)
    os.close(write)
