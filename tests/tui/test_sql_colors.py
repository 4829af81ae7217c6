"""What each piece of a SQL text is."""

from __future__ import annotations

import pytest

from explorer.tui.sql_colors import sql_pieces


@pytest.mark.parametrize(
    ("sql", "pieces"),
    [
        ("", []),
        ("SELECT 1.5e3", [("SELECT", "keyword"), ("1.5e3", "number")]),
        ("select x from lines", [("select", "keyword"), ("from", "keyword"), ("lines", "relation")]),
        ("count (*)", [("count", "function")]),
        (
            "'it''s' \"select\" -- from\nwhere",
            [("'it''s'", "string"), ("-- from", "comment"), ("where", "keyword")],
        ),
        ("/* a\nb */ x1", [("/* a\nb */", "comment")]),
        ("'open", [("'open", "string")]),
        ("/* open", [("/* open", "comment")]),
    ],
)
def test_pieces(sql: str, pieces: list[tuple[str, str]]) -> None:
    assert [(sql[begin:end], kind) for begin, end, kind in sql_pieces(sql)] == pieces
