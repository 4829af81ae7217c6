"""Screens are made before they are visited, and ask for nothing until then."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

import pytest

from explorer.tui.app import ExplorerApp
from explorer.tui.modes import MODULES, SCREENS
from explorer.tui.screens_ahead import style_ahead
from explorer.tui.screenshot import picture, settle
from explorer.tui.widgets.table import Table

Make = Callable[..., ExplorerApp]


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("explorer.tui.screens_ahead.QUIET_SECONDS", 0.0)
    monkeypatch.setattr("explorer.tui.screens_ahead.SOON_WANTED", ())
    # pytest rewrites what is imported, and two threads that read Python code at once fail (CPython gh-106905).
    for module in MODULES.values():
        import_module(module)


async def test_every_screen_is_made_and_laid_out_and_only_the_one_in_front_asks(make_app: Make) -> None:
    app = make_app(load_ahead=True)
    async with app.run_test(size=(120, 36)) as pilot:
        await settle(pilot)
        assert app.current_mode == "overview"
        for name in SCREENS:
            screen = app.screen_of(name)
            assert screen.size == (120, 36), name
            assert screen.up_to_date == (name == "overview"), name
        assert app.screen_of("ops").query_one("#ops", Table).loading_text == "Loading…"
        await pilot.press("4")
        await settle(pilot)
        assert app.screen.query_one("#ops", Table).rows


@pytest.mark.parametrize("name", ["ops", "findings", "source", "timeline"])
async def test_a_screen_made_ahead_looks_as_one_made_when_it_is_visited(make_app: Make, name: str) -> None:
    pictures = []
    for ahead in (False, True):
        app = make_app(load_ahead=ahead)
        async with app.run_test(size=(100, 30)) as pilot:
            await settle(pilot)
            assert app.made(name) == ahead
            await pilot.press(SCREENS[name][0])
            await settle(pilot)
            pictures.append(picture(app))
    assert pictures[0] == pictures[1]


async def test_a_new_theme_reaches_screens_in_the_back(make_app: Make) -> None:
    pictures = []
    for ahead in (False, True):
        app = make_app()
        async with app.run_test(size=(100, 30)) as pilot:
            await settle(pilot)
            await pilot.press("4")
            await settle(pilot)
            await pilot.press("1", "T")
            await settle(pilot)
            ops = app.screen_of("ops")
            assert ops._css_update_count != app._css_update_count
            if ahead:
                await style_ahead(app)
                assert ops._css_update_count == app._css_update_count
            app.clear_notifications()
            await pilot.press("4")
            await settle(pilot)
            pictures.append(picture(app))
    assert pictures[0] == pictures[1]


async def test_a_run_that_has_grown_is_asked_by_the_screen_in_front_only(make_app: Make) -> None:
    app = make_app()
    async with app.run_test(size=(100, 30)) as pilot:
        await settle(pilot)
        await pilot.press("4")
        await settle(pilot)
        await pilot.press("1")
        await settle(pilot)
        app._open()
        await settle(pilot)
        assert app.screen_of("overview").up_to_date
        assert not app.screen_of("ops").up_to_date
        await pilot.press("4")
        await settle(pilot)
        assert app.screen_of("ops").up_to_date
        assert app.screen.query_one("#ops", Table).rows
