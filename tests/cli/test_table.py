"""Tables fit the width and lose what matters least."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from explorer.cli.table import Column, fitted, print_hanging, print_table

COLUMNS = (
    Column("name", "Name", flexible=True),
    Column("file", "File", "path", flexible=True),
    Column("time_ns", "Time", "duration"),
    Column("calls", "Calls", "number", priority=1),
    Column("mean_ns", "Mean", "duration", priority=2),
)
ROWS = [
    {
        "name": "aten::native_layer_norm_backward",
        "file": "models/encoder/blocks/attention.py",
        "time_ns": 1_500_000,
        "calls": 12,
        "mean_ns": 125_000,
    },
    {"name": "aten::add", "file": "train.py", "time_ns": 900, "calls": 1_234_567, "mean_ns": None},
]


def printed(width: int, rows: list[dict[str, object]] = ROWS) -> list[str]:
    stream = io.StringIO()
    print_table(rows, COLUMNS, to=Console(file=stream, width=width, highlight=False))
    return stream.getvalue().splitlines()


def test_wide_table_shows_everything() -> None:
    assert printed(120) == [
        "Name                              File                                   Time      Calls    Mean",
        "aten::native_layer_norm_backward  models/encoder/blocks/attention.py  1.50 ms         12  125 µs",
        "aten::add                         train.py                             900 ns  1,234,567",
    ]


def test_narrow_table_hides_low_priorities_and_keeps_the_ends_of_paths() -> None:
    lines = printed(50)
    assert lines[0].split() == ["Name", "File", "Time"]
    assert "…" in lines[1]
    assert lines[1].split()[1].endswith("attention.py")
    assert all(len(line) <= 50 for line in lines)


def test_columns_without_values_are_left_out() -> None:
    rows: list[dict[str, object]] = [{"name": "x", "file": "y", "time_ns": 1}]
    assert printed(80, rows)[0].split() == ["Name", "File", "Time"]


def test_piped_output_has_no_escapes(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(ROWS, COLUMNS)
    assert "\x1b" not in capsys.readouterr().out


@given(st.lists(st.integers(1, 60), min_size=5, max_size=5), st.integers(60, 200))
def test_fitted_widths_never_exceed_the_terminal(widths: list[int], available: int) -> None:
    result = fitted(dict(enumerate(widths)), COLUMNS, available)
    always = {i for i, column in enumerate(COLUMNS) if column.priority == 0}
    assert always <= set(result)
    assert all(result[i] <= widths[i] for i in result)
    smallest = sum(min(widths[i], 16) if COLUMNS[i].flexible else widths[i] for i in always) + 2 * (
        len(always) - 1
    )
    assert sum(result.values()) + 2 * (len(result) - 1) <= max(available, smallest)


def test_hanging_text_is_aligned() -> None:
    stream = io.StringIO()
    print_hanging("ab  ", "one two three four five six", to=Console(file=stream, width=24))
    assert stream.getvalue() == "ab  one two three four\n    five six\n"


def test_rank_zero_and_step_zero_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    columns = [
        Column("rank", "Rank", "number", 3),
        Column("step", "Step", "number", 2),
        Column("ops", "Ops", "number", 1),
    ]
    print_table([{"rank": 0, "step": 0, "ops": 0}, {"rank": 0, "step": None, "ops": 0}], columns)
    assert [line.split() for line in capsys.readouterr().out.splitlines()] == [
        ["Rank", "Step"],
        ["0", "0"],
        ["0"],
    ]
