"""Keys that come faster than they are answered."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from textual import events
from textual.pilot import Pilot
from textual.widgets import Input

from explorer.tui.app import ExplorerApp
from explorer.tui.screens.help import HelpScreen
from explorer.tui.screens.sql import SqlScreen
from explorer.tui.screenshot import settle
from explorer.tui.widgets.header import ModeBar
from tests.tui.waiting import until

Make = Callable[..., ExplorerApp]


def at_once(app: ExplorerApp, *keys: str) -> None:
    """Keys as a terminal sends what was typed while it was busy: all before the first is taken."""
    for key in keys:
        app.post_message(events.Key({" ": "space"}.get(key, key), key if len(key) == 1 else None))


async def settled(app: ExplorerApp, pilot: Pilot[None]) -> SqlScreen:
    await settle(pilot)
    screen = app.screen
    assert isinstance(screen, SqlScreen)
    return screen


async def test_text_behind_a_key_that_selects_everything_replaces_it(make_app: Make) -> None:
    app = make_app(screen="sql")
    async with app.run_test(size=(80, 24)) as pilot:
        at_once(app, "f7", *"SELECT 1")
        screen = await settled(app, pilot)
        assert screen.panel.editor.text == "SELECT 1"
        at_once(app, "f7", *"SELECT 23")
        await settle(pilot)
        assert screen.panel.editor.text == "SELECT 23"


async def test_the_key_that_runs_a_statement_runs_all_of_it(make_app: Make) -> None:
    app = make_app()
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        at_once(app, "9", "f7", *"SELECT 123 AS n", "ctrl+r")
        screen = await settled(app, pilot)
        assert screen.panel.table.rows == [{"n": 123}]


async def test_what_is_pasted_waits_for_the_editor(make_app: Make) -> None:
    app = make_app(screen="sql")
    async with app.run_test(size=(80, 24)) as pilot:
        at_once(app, "f7")
        app.post_message(events.Paste("SELECT 45"))
        at_once(app, *"6")
        screen = await settled(app, pilot)
        assert screen.panel.editor.text == "SELECT 456"


async def test_text_behind_the_key_of_the_palette_goes_there(make_app: Make) -> None:
    app = make_app()
    async with app.run_test(size=(120, 36)) as pilot:
        await settle(pilot)
        at_once(app, "ctrl+p", *"Ranks")
        await until(pilot, lambda: [box.value for box in app.screen.query(Input)] == ["Ranks"])
        assert app.current_mode == "overview"


async def test_a_key_behind_a_dialog_that_ends_goes_to_the_screen(make_app: Make) -> None:
    app = make_app()
    async with app.run_test(size=(120, 36)) as pilot:
        await settle(pilot)
        at_once(app, "question_mark", "escape", "4", "slash", *"aten")
        await settle(pilot)
        assert app.current_mode == "ops"
        assert not isinstance(app.screen, HelpScreen)
        await until(pilot, lambda: app.screen.query_one("#filter", Input).value == "aten")


async def test_a_widget_that_is_gone_holds_no_key_back(
    make_app: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("explorer.tui.typed_ahead.KeyTaken.bubble", False)  # as if it never came back
    app = make_app()
    async with app.run_test(size=(120, 36)) as pilot:
        await settle(pilot)
        at_once(app, "j", "4", "5")
        await until(pilot, lambda: app.current_mode == "findings")


async def test_a_screen_that_has_yet_to_be_made_is_marked_first(make_app: Make) -> None:
    app = make_app()
    async with app.run_test(size=(120, 36)) as pilot:
        await settle(pilot)
        front, bar = app.screen, app.screen.query_one(ModeBar)
        app._go_by_key("ops")
        assert (bar.current, app.opening, app.screen) == ("ops", "ops", front)
        await until(pilot, lambda: app.current_mode == "ops")
        await settle(pilot)
        assert (bar.current, app.opening) == ("overview", None)
        assert app.screen.query_one(ModeBar).current == "ops"
