"""Screens are made before they are visited, and ask for nothing until then."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module

import pytest
from textual.color import Color
from textual.css.model import RuleSet
from textual.css.parse import parse as library_parse
from textual.css.stylesheet import Stylesheet
from textual.pilot import Pilot

from explorer.tui.app import ExplorerApp
from explorer.tui.modes import MODULES, SCREENS
from explorer.tui.screens_ahead import style_ahead
from explorer.tui.screenshot import picture, settle
from explorer.tui.theme import THEMES
from explorer.tui.widgets.key_line import KeyLine
from explorer.tui.widgets.table import Table

Make = Callable[..., ExplorerApp]


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("explorer.tui.screens_ahead.QUIET_SECONDS", 0.0)
    monkeypatch.setattr("explorer.tui.screens_ahead.SOON_WANTED", ())
    # pytest rewrites what is imported, and two threads that read Python code at once fail (CPython gh-106905).
    for module in MODULES.values():
        import_module(module)


async def visit_ops(pilot: Pilot[None]) -> None:
    """Wait for the overview, go to the ops and come back."""
    for key in ("4", "1"):
        await settle(pilot)
        await pilot.press(key)
    await settle(pilot)


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
        await visit_ops(pilot)
        app._open()
        await settle(pilot)
        assert app.screen_of("overview").up_to_date
        assert not app.screen_of("ops").up_to_date
        await pilot.press("4")
        await settle(pilot)
        assert app.screen_of("ops").up_to_date
        assert app.screen.query_one("#ops", Table).rows


async def test_a_screen_made_ahead_is_drawn_ahead_and_shown_at_once(
    make_app: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = make_app(load_ahead=True)
    async with app.run_test(size=(120, 36)) as pilot:
        await settle(pilot)
        screen = app.screen_of("ops")
        table = screen.query_one("#ops", Table)
        assert table.size.height == len(table._styles_cache._cache) > 20
        shown: list[str] = []
        monkeypatch.setattr(app, "_display", lambda screen, new: shown.append(screen.NAME) if new else None)
        app.switch_mode("ops")
        assert shown == ["ops"]
        assert app._batch_count == 0  # nothing holds the next pictures back
        await settle(pilot)
        assert table.rows
        # Another visit is one picture, not one more when the library says that the screen is back.
        app.switch_mode("overview")
        await settle(pilot)
        shown.clear()
        app.switch_mode("ops")
        await settle(pilot)
        assert shown == ["ops"]


async def test_a_screen_that_comes_back_from_a_dialog_is_drawn_again(make_app: Make) -> None:
    app = make_app()
    async with app.run_test(size=(100, 30)) as pilot:
        await visit_ops(pilot)
        before = picture(app)
        await pilot.press("question_mark")
        await settle(pilot)
        assert picture(app) != before
        await pilot.press("escape")
        await settle(pilot)
        assert picture(app) == before


async def test_a_theme_parsed_ahead_is_not_parsed_again(
    make_app: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = make_app(load_ahead=True)
    async with app.run_test(size=(100, 30)) as pilot:
        await settle(pilot)
        parsed: list[object] = []

        def parse(scope: str, css: str, read_from: object, **more: object) -> Iterable[RuleSet]:
            parsed.append(read_from)
            return library_parse(scope, css, read_from, **more)  # type: ignore[arg-type]

        monkeypatch.setattr("textual.css.stylesheet.parse", parse)
        for theme in [*THEMES[1:], THEMES[0]]:
            app.action_next_theme()
            await settle(pilot)
            assert app.theme == theme.name
            fresh = Stylesheet(variables=app.get_css_variables())
            fresh.source = app.stylesheet.source.copy()
            known = len(parsed)
            fresh.parse()
            assert _colors(app.stylesheet) == _colors(fresh)
            del parsed[known:]
        # Messages and their rack came with the first theme; nothing else did.
        assert {str(place).rsplit(":", 1)[-1].rstrip("')") for place in parsed} <= {
            "Toast",
            "ToastHolder",
            "ToastRack",
        }
        assert len(parsed) <= 3 * len(THEMES)


def _colors(sheet: Stylesheet) -> list[tuple[str, dict[str, Color]]]:
    return [
        (
            rule.selectors,
            {key: value for key, value in rule.styles.get_rules().items() if isinstance(value, Color)},
        )
        for rule in sheet.rules
    ]


async def test_keys_that_stay_the_same_lay_nothing_out(
    make_app: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = make_app()
    async with app.run_test(size=(120, 36)) as pilot:
        await settle(pilot)
        line = app.screen.query_one(KeyLine)
        asked: list[bool] = []
        monkeypatch.setattr(line, "refresh", lambda *_, layout=False: asked.append(layout))
        line._keys_changed(None)
        assert asked == []
        app.screen.set_focus(None)  # the keys of the table are gone
        line._keys_changed(None)
        assert asked == [False]
