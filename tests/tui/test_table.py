"""The table widget by itself: drawing, sorting, filtering, moving."""

from __future__ import annotations

from typing import Any

from rich.cells import cell_len
from textual.app import App, ComposeResult

from explorer.tui.theme import DEFAULT_THEME, THEMES, inks
from explorer.tui.widgets.table import Column, Table

COLUMNS = (
    Column("name", "Name", "name", flex=1),
    Column("time_ns", "time", "duration", width=9),
    Column("share", "share", "share", width=8, rank=1),
    Column("bar", "", "bar", width=8, rank=2),
)
ROWS = [
    {"name": "aten::add", "time_ns": 2_000_000, "share": 0.2, "bar": 0.2},
    {"name": "[red]evil\x1b[2J\u202e漢字", "time_ns": 5_000_000, "share": 0.5, "bar": 0.5},
    {"name": "aten::mul", "time_ns": None, "share": 0.0, "bar": 0.0},
    {"name": "k" * 4000, "time_ns": 1_000, "share": 0.0001, "bar": 0.0001},
]


class Host(App[None]):
    def __init__(self, rows: list[dict[str, Any]] | None) -> None:
        super().__init__()
        for theme in THEMES:
            self.register_theme(theme)
        self.theme = DEFAULT_THEME
        self.rows = rows
        self.opened: list[Any] = []

    def get_theme_variable_defaults(self) -> dict[str, str]:
        own = inks(self.current_theme)
        return {f"ink-{name}": own[name] for name in ("muted", "faint", "cursor", "resting")}

    def compose(self) -> ComposeResult:
        yield Table(COLUMNS, empty="Nothing to see.")

    def on_mount(self) -> None:
        table = self.query_one(Table)
        table.focus()
        if self.rows is not None:
            table.set_rows(self.rows)

    def on_table_selected(self, event: Table.Selected) -> None:
        self.opened.append(event.row)


def lines(app: App[None]) -> list[str]:
    table = app.query_one(Table)
    return ["".join(s.text for s in table.render_line(y)) for y in range(table.size.height)]


async def test_rows_are_drawn_to_the_exact_width_whatever_they_hold() -> None:
    app = Host(ROWS)
    for width in (20, 60, 120):
        async with Host(ROWS).run_test(size=(width, 12)) as pilot:
            await pilot.pause()
            shown = lines(pilot.app)
            assert {cell_len(line) for line in shown} == {width}
            assert not any("\x1b" in line or "\u202e" in line for line in shown)
            assert any("[red]evil␛[2J" in line for line in shown) or width < 60
    assert app.opened == []


async def test_columns_of_low_rank_go_first_in_a_narrow_terminal() -> None:
    async with Host(ROWS).run_test(size=(34, 8)) as pilot:
        await pilot.pause()
        assert "time" in lines(pilot.app)[0]
        assert "share" not in lines(pilot.app)[0]
    async with Host(ROWS).run_test(size=(80, 8)) as pilot:
        await pilot.pause()
        assert "share" in lines(pilot.app)[0]


async def test_sorting_puts_unknown_values_last_both_ways() -> None:
    async with Host(ROWS).run_test(size=(80, 8)) as pilot:
        table = pilot.app.query_one(Table)
        await pilot.press("s", "s")
        assert (table.sort_key, table.descending) == ("time_ns", True)
        assert [row["time_ns"] for row in table.rows] == [5_000_000, 2_000_000, 1_000, None]
        await pilot.press("S")
        assert [row["time_ns"] for row in table.rows] == [1_000, 2_000_000, 5_000_000, None]
        assert "time▴" in lines(pilot.app)[0]


async def test_a_click_on_a_heading_sorts_and_again_reverses() -> None:
    async with Host(ROWS).run_test(size=(80, 8)) as pilot:
        table = pilot.app.query_one(Table)
        await pilot.pause()
        x = lines(pilot.app)[0].index("time")
        await pilot.click(Table, offset=(x, 0))
        assert (table.sort_key, table.descending) == ("time_ns", True)
        await pilot.click(Table, offset=(x, 0))
        assert (table.sort_key, table.descending) == ("time_ns", False)


async def test_filter_keeps_rows_with_every_word_and_says_when_there_are_none() -> None:
    async with Host(ROWS).run_test(size=(80, 8)) as pilot:
        table = pilot.app.query_one(Table)
        table.set_filter("ATEN mu")
        assert [row["name"] for row in table.rows] == ["aten::mul"]
        table.set_filter("zzz")
        assert "No row matches “zzz”." in "\n".join(lines(pilot.app))
        table.set_filter("")
        assert len(table.rows) == 4


async def test_loading_and_empty_states() -> None:
    async with Host(None).run_test(size=(40, 8)) as pilot:
        await pilot.pause()
        assert "Loading…" in "\n".join(lines(pilot.app))
        pilot.app.query_one(Table).set_rows([])
        assert "Nothing to see." in "\n".join(lines(pilot.app))


async def test_moving_scrolling_and_opening() -> None:
    rows = [{"name": f"row {i}", "time_ns": i, "share": 0.0, "bar": 0.0} for i in range(100_000)]
    async with Host(rows).run_test(size=(60, 10)) as pilot:
        app, table = pilot.app, pilot.app.query_one(Table)
        await pilot.press("end")
        await pilot.pause()
        assert table.cursor == 99_999
        assert "row 99999" in lines(app)[-1]
        await pilot.press("home", "down", "j", "enter")
        await pilot.pause()
        assert [row["name"] for row in app.opened] == ["row 2"]  # type: ignore[attr-defined]
        await pilot.press("pagedown")
        assert table.cursor == 2 + 8
        assert "row 10" in "\n".join(lines(app))


async def test_columns_that_do_not_fit_can_be_reached() -> None:
    wide = [Column(f"c{i}", f"column{i}", width=20) for i in range(8)]
    async with Host([{f"c{i}": f"value{i}" for i in range(8)}]).run_test(size=(60, 6)) as pilot:
        table = pilot.app.query_one(Table)
        table.set_columns(wide)
        table.set_rows([{f"c{i}": f"value{i}" for i in range(8)}])
        await pilot.pause()
        assert lines(pilot.app)[0].rstrip().endswith("»")
        assert "value7" not in lines(pilot.app)[1]
        await pilot.press(*["right"] * 7)
        await pilot.pause()
        assert lines(pilot.app)[0].startswith("«")
        assert "value7" in lines(pilot.app)[1]
