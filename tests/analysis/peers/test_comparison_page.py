"""The comparison page shows no difference that the tests would not allow."""

from __future__ import annotations

from pathlib import Path

PAGE = Path(__file__).resolve().parents[3] / "docs" / "comparison.md"
FINE = ("=", "none", "cannot read it", "fails")


def test_every_row_is_equal_or_says_why_there_is_nothing_to_compare() -> None:
    rows = [
        line.split(" | ") for line in PAGE.read_text().splitlines() if line.startswith("| ") and " / " in line
    ]
    rows = [row for row in rows if not row[0].startswith("| trace")]
    assert len(rows) >= 30
    for row in rows:
        assert row[3].strip().startswith(FINE), row
        assert row[5].strip().startswith(FINE), row
    assert sum(row[3].strip() == "=" for row in rows) >= 25
    assert sum(row[5].strip() == "=" for row in rows) >= 20
