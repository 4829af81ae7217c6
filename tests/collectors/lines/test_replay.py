"""What a thread was executing, from its records."""

from __future__ import annotations

import pytest

from explorer.collectors.lines.records import COARSE, LOST, ThreadRecords
from explorer.collectors.lines.replay import Replay


def nodes_of(text: str, name: str, payload: int) -> list[tuple[int, bool]]:
    """(line, coarse) after entering code, its line 3, the payload, and line 4."""
    module = compile(text, "program.py", "exec")
    codes = {code.co_name: code for code in [module, *(c for c in module.co_consts if hasattr(c, "co_name"))]}
    replay = Replay()
    records = [codes[name], 3, payload, 4, payload]
    thread = ThreadRecords(1, 1, "main", [item for pair in enumerate(records) for item in pair])
    return [(replay.chains.lines[n], replay.chains.coarse[n]) for n in replay.nodes(thread)]


@pytest.mark.parametrize("payload", [COARSE, LOST - 1])
def test_a_hot_function_is_known_by_its_first_line(payload: int) -> None:
    text = "import os\ndef hot():\n  a = 1\n  b = 2\n"
    assert nodes_of(text, "hot", payload) == [(2, False), (3, False), (2, True), (4, False), (2, True)]


@pytest.mark.parametrize("payload", [COARSE, LOST - 1])
def test_a_hot_module_level_is_known_by_the_last_line_seen(payload: int) -> None:
    text = "import os\nwhile True:\n  a = 1\n  b = 2\n"
    first = compile(text, "program.py", "exec").co_firstlineno
    found = nodes_of(text, "<module>", payload)
    assert found == [(first, False), (3, False), (3, True), (4, False), (4, True)]
