"""The app as a whole: screens by number, help, palette, themes, resizing, quitting, failing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from textual import events
from textual.css.query import NoMatches
from textual.pilot import Pilot
from textual.widgets import OptionList

from explorer.analysis.findings import Told, all_rules
from explorer.analysis.key_figures import Overview, overview
from explorer.analysis.run import Run, open_run
from explorer.model.errors import InputError
from explorer.model.finding import Findings
from explorer.store.writer import RunWriter
from explorer.tui.app import ExplorerApp
from explorer.tui.commands import ActionCommands, described_bindings, own_bindings
from explorer.tui.data import FindHere, LaneName
from explorer.tui.find_apart import FindApart
from explorer.tui.first_answer import first_answer
from explorer.tui.lane import StaleError
from explorer.tui.modes import SCREENS
from explorer.tui.screens.frame import ExplorerScreen
from explorer.tui.screens.help import HelpScreen
from explorer.tui.screens.sql import SqlScreen
from explorer.tui.screenshot import settle
from explorer.tui.theme import THEMES
from explorer.tui.threads import QuestionThreads
from explorer.tui.widgets.header import ModeBar, RunLine
from explorer.tui.widgets.key_line import KeyLine
from explorer.tui.widgets.table import Table
from tests.tui.waiting import until

Make = Callable[..., ExplorerApp]


async def test_number_keys_reach_every_screen_and_each_shows_its_answers(make_app: Make) -> None:
    app = make_app()
    async with app.run_test(size=(120, 36)) as pilot:
        await settle(pilot)
        for name, (key, _, _, _) in SCREENS.items():
            if app.current_mode == "sql":
                await pilot.press("escape")
            await pilot.press(key)
            await settle(pilot)
            assert app.current_mode == name
            for table in app.screen.query(Table):
                loaded = table.loading_text is None or table.id == "sql-result"
                assert loaded or not table.display, (name, table.id)
        assert app.screen.query_one(RunLine).run_name == "sample"


@pytest.mark.parametrize("name", ["overview", "timeline", "source", "ops", "sql"])
async def test_q_quits(make_app: Make, name: str) -> None:
    app = make_app(screen=name)
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        if name == "sql":
            await pilot.press("escape")
        await pilot.press("q")
        await pilot.pause()
        assert app._exit
        assert app.return_code == 0


@pytest.mark.parametrize("dialog", ["question_mark", "h"])
async def test_q_quits_from_a_dialog_and_escape_closes_it(make_app: Make, dialog: str) -> None:
    app = make_app()
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        below = app.screen
        await pilot.press(dialog)
        await settle(pilot)
        assert app.screen is not below
        await pilot.press("escape")
        await pilot.pause()
        assert app.screen is below
        await pilot.press(dialog)
        await settle(pilot)
        await pilot.press("q")
        await pilot.pause()
        assert app._exit


async def test_keys_typed_before_the_editor_is_there_are_not_lost(make_app: Make) -> None:
    app = make_app(screen="sql")
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("ctrl+a", *"--q1 ")
        await settle(pilot)
        screen = app.screen
        assert isinstance(screen, SqlScreen)
        assert "--q1 " in screen.panel.editor.text
        assert app.current_mode == "sql"
        assert not app._exit


async def test_keys_behind_a_number_key_go_to_its_screen(make_app: Make) -> None:
    app = make_app()
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        for key in ("9", "h", "i", "4"):
            app.post_message(events.Key(key, key))
        await settle(pilot)
        screen = app.screen
        assert isinstance(screen, SqlScreen)
        assert "hi4" in screen.panel.editor.text


@pytest.mark.parametrize("size", [(80, 24), (250, 70)])
async def test_the_footer_shows_every_key_of_a_screen_on_request(
    make_app: Make, size: tuple[int, int]
) -> None:
    app = make_app()
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        for name in SCREENS:
            app.switch_mode(name)
            await settle(pilot)
            await pilot.press("f2")
            await pilot.pause()
            footer = app.screen.query_one(KeyLine)
            lines = str(footer.render()).split("\n")
            assert footer.size.height == len(lines), name
            assert all(len(line) <= size[0] for line in lines), name
            text = " ".join(" ".join(lines).split())
            for node, binding, enabled, _ in app.screen.active_bindings.values():
                own = any(binding is each for each in own_bindings(node))
                if enabled and own and not binding.action.startswith("go("):
                    assert binding.description in text, (name, binding.description)
            assert "…" not in lines[-1], name
            await pilot.press("f2")
            await pilot.pause()
            assert len(str(footer.render()).split("\n")) <= 2, name


async def test_ctrl_q_quits_while_text_is_typed(make_app: Make) -> None:
    app = make_app(screen="sql")
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await pilot.press("q")
        assert not app._exit
        await pilot.press("ctrl+q")
        await pilot.pause()
        assert app._exit


async def test_every_action_is_in_the_help_and_in_the_palette(make_app: Make) -> None:
    app = make_app()
    async with app.run_test(size=(120, 36)) as pilot:
        await settle(pilot)
        for name in SCREENS:
            app.switch_mode(name)
            await settle(pilot)
            await _check_actions(app, pilot)


async def _check_actions(app: ExplorerApp, pilot: Pilot[None]) -> None:
    screen = app.screen
    assert isinstance(screen, ExplorerScreen)
    assert screen.ABOUT
    wanted = set()
    for node in [screen, app, *[w for w in screen.query("*") if w.can_focus]]:
        for base in type(node).__mro__:
            if base.__module__.startswith("explorer."):
                for binding in base.__dict__.get("BINDINGS", []):
                    assert binding.description, binding
                    wanted.add(binding.tooltip or binding.description)
    assert wanted <= {description for _, _, description in described_bindings(app, screen)}
    provider = ActionCommands(screen)
    titles = {str(hit.display) async for hit in provider.discover()}
    assert wanted <= titles
    await pilot.press("f1")
    await pilot.pause()
    assert isinstance(app.screen, HelpScreen)
    await pilot.press("escape")
    await pilot.pause()
    assert app.screen is screen


@pytest.mark.parametrize("size", [(80, 24), (250, 70)])
async def test_the_footer_always_shows_help_palette_and_quit(make_app: Make, size: tuple[int, int]) -> None:
    app = make_app()
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        for name in SCREENS:
            app.switch_mode(name)
            await settle(pilot)
            text = str(app.screen.query_one(KeyLine).render())
            last = text.split("\n")[-1]
            assert "Help" in last, name
            assert "Palette" in last, name
            assert "Quit" in last, name
            assert len(last) <= size[0]


async def test_the_palette_runs_an_action(make_app: Make) -> None:
    app = make_app()
    async with app.run_test(size=(120, 36)) as pilot:
        await settle(pilot)
        await pilot.press("ctrl+p")
        await pilot.press(*"Go to Ranks")
        hits = app.screen.query_one(OptionList)
        await until(
            pilot, lambda: hits.highlighted == 0 and "Ranks" in str(hits.get_option_at_index(0).prompt)
        )
        await pilot.press("enter")
        await settle(pilot)
        assert app.current_mode == "ranks"


async def test_a_click_on_the_screen_list_changes_the_screen(make_app: Make) -> None:
    app = make_app()
    async with app.run_test(size=(120, 36)) as pilot:
        await settle(pilot)
        bar = app.screen.query_one(ModeBar)
        at = str(bar.render()).index("5 Findings")
        await pilot.click(ModeBar, offset=(at + 2, 0))
        await settle(pilot)
        assert app.current_mode == "findings"


async def test_themes_go_round_and_colours_follow(make_app: Make) -> None:
    app = make_app()
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        seen = []
        for _ in THEMES:
            seen.append((app.theme, app.screen.styles.background.hex))
            await pilot.press("T")
            await pilot.pause()
        assert [name for name, _ in seen] == [theme.name for theme in THEMES]
        assert app.theme == seen[0][0]
        assert len({background for _, background in seen}) == len(THEMES)


async def test_resizing_keeps_the_state(make_app: Make) -> None:
    app = make_app(screen="ops")
    async with app.run_test(size=(120, 36)) as pilot:
        await settle(pilot)
        table = app.screen.query_one("#ops", Table)
        await pilot.press("down", "down", "s", "slash", *"aten", "enter")
        await settle(pilot)
        before = (table.cursor, table.sort_key, table.filter, [row["name"] for row in table.rows])
        assert before[1:3] == ("name", "aten")
        for size in ((80, 24), (250, 70), (40, 12), (120, 36)):
            await pilot.resize_terminal(*size)
            await pilot.pause()
        assert (table.cursor, table.sort_key, table.filter, [row["name"] for row in table.rows]) == before
        await pilot.press("5")
        await settle(pilot)
        await pilot.press("4")
        await pilot.pause()
        assert (table.cursor, table.sort_key) == before[:2]


async def test_a_tiny_terminal_does_not_break_any_screen(make_app: Make) -> None:
    app = make_app()
    async with app.run_test(size=(20, 6)) as pilot:
        await settle(pilot)
        for name in SCREENS:
            app.switch_mode(name)
            await settle(pilot)


async def test_an_unreadable_run_ends_the_app_with_its_error() -> None:
    def fails() -> Run:
        raise InputError("x is not a run.", "Record one.")

    app = ExplorerApp(fails, "x")
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await pilot.pause()
    assert isinstance(app.failure, InputError)
    assert app.crash is None


async def test_a_crash_is_kept_for_the_report_and_not_printed_over_the_terminal(
    make_app: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    app = make_app()
    with pytest.raises(ZeroDivisionError):  # noqa: PT012
        async with app.run_test(size=(80, 24)) as pilot:
            await settle(pilot)
            app.call_later(lambda: 1 // 0)
            await until(pilot, lambda: app.crash)
    assert isinstance(app.crash, ZeroDivisionError)
    assert "Traceback" not in capsys.readouterr().err


async def test_what_misses_its_widgets_while_the_app_ends_is_no_crash(make_app: Make) -> None:
    app = make_app()
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
    app._handle_exception(NoMatches("gone"))
    assert app.crash is None
    error = ValueError("a fault")
    app._handle_exception(error)
    assert app.crash is error


async def test_one_broken_answer_leaves_the_rest_working(
    make_app: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    reported: list[BaseException] = []

    def broken(self: Run) -> Any:
        raise RuntimeError("a rule broke")

    monkeypatch.setattr(Run, "bottlenecks", broken)
    app = make_app(report=lambda error: reported.append(error) or "/tmp/report.txt")
    async with app.run_test(size=(120, 36), notifications=True) as pilot:
        await settle(pilot)
        assert [str(error) for error in reported] == ["a rule broke"]
        await pilot.press("4")
        await settle(pilot)
        assert len(app.screen.query_one("#ops", Table).rows) == 8


async def test_the_run_is_opened_while_the_first_picture_is_there(make_app: Make) -> None:
    app = make_app()
    async with app.run_test(size=(80, 24)) as pilot:
        # Before the run is open the screen already says so.
        assert "Opening sample" in str(app.screen.query_one("#story-title").render()) or app.data is not None
        await settle(pilot)
        assert app.facts == "6 steps · 2 ranks · 2 × Test GPU · 768 events"
        assert app.warning_count == 1 or app.warning_count == 2


async def test_a_run_being_written_is_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from explorer.tui import app as app_module

    monkeypatch.setattr(app_module, "FOLLOW_SECONDS", 0.1)
    writer = RunWriter(tmp_path / "live", made_by="capture")
    row = {"track_id": 1, "category": "op", "duration_ns": 10, "self_ns": 10}
    writer.write("tracks", [{"track_id": 1, "kind": "thread", "device_type": "cpu", "label": "main"}])
    writer.write("events", [{**row, "event_id": 1, "name": "aten::first", "start_ns": 1000}])
    writer.commit()
    app = ExplorerApp(lambda: open_run(tmp_path / "live"), "live", screen="ops")
    async with app.run_test(size=(100, 30)) as pilot:
        await settle(pilot)
        table = app.screen.query_one("#ops", Table)
        assert [r["name"] for r in table.rows] == ["aten::first"]
        writer.write("events", [{**row, "event_id": 2, "name": "aten::second", "start_ns": 2000}])
        writer.close()
        await until(pilot, lambda: len(table.rows) == 2)
        assert {r["name"] for r in table.rows} == {"aten::first", "aten::second"}


@pytest.mark.parametrize("lane", ["main", "quick", "long", "sql"])
async def test_a_newer_question_interrupts_the_stale_one(make_app: Make, lane: LaneName) -> None:
    app = make_app()
    answers: list[int] = []
    slow = "SELECT count(*) AS n FROM range(3000000) a, range(3000000) b"

    def count(sql: str) -> Callable[[Run], int]:
        if lane == "sql":
            return lambda run: int(run.sql(sql, timeout_s=1000).rows()[0]["n"])
        return lambda run: int(run.engine.sql(sql).rows()[0]["n"])

    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        assert app.data is not None
        # Without the interrupt the first question would take for ever.
        app.data.ask(app.screen, "x", count(slow), answers.append, lane=lane)
        await until(pilot, lambda: app.data and app.data._lanes[lane]._current)
        app.data.ask(app.screen, "x", count("SELECT 7 AS n"), answers.append, lane=lane)
        await settle(pilot)
    assert answers == [7]


async def test_long_questions_keep_nobody_waiting(make_app: Make) -> None:
    app = make_app()
    answers: list[str] = []
    done = Event()
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        assert app.data is not None
        for number in range(12):  # more than a pool of threads would hold
            app.data.ask(app.screen, f"wait {number}", lambda _: done.wait(60), lambda _: None, lane="long")
        app.data.ask(app.screen, "detail", lambda _: "at once", answers.append, lane="quick")
        await until(pilot, lambda: answers)
        assert answers == ["at once"]
        done.set()
        await settle(pilot)


def test_what_has_not_ended_is_known() -> None:
    threads, done = QuestionThreads(), Event()
    assert threads.all_ended(0.0)
    waiting = threads.submit(done.wait, 60)
    failing = threads.submit(int, "seven")
    assert isinstance(failing.exception(10), ValueError)
    assert not threads.all_ended(0.01)
    done.set()
    assert waiting.result(10)
    assert threads.all_ended(10.0)


def test_bottlenecks_found_in_another_process_are_the_same(sample: Run) -> None:
    assert FindApart()(sample).to_json() == sample.bottlenecks().to_json()


def test_the_other_process_says_how_far_it_is(sample: Run) -> None:
    told: list[tuple[int, int, int]] = []
    found = FindApart()(sample, lambda *asked: told.append(asked))
    rules = len(all_rules())
    assert [asked for asked, _, _ in told] == list(range(rules))
    assert {of for _, of, _ in told} == {rules}
    assert [so_far for _, _, so_far in told] == sorted(so_far for _, _, so_far in told)
    assert told[-1][2] >= len(found) > 0


async def test_how_far_looking_for_bottlenecks_is_stands_where_they_will(make_app: Make) -> None:
    may_end = Event()

    class Slow(FindHere):
        def __call__(self, run: Run, told: Told | None = None) -> Findings:
            assert told is not None
            told(22, 62, 1)
            may_end.wait(60)
            return run.bottlenecks()

    app = make_app(find=Slow())
    async with app.run_test(size=(120, 36)) as pilot:
        table = app.screen.query_one("#findings", Table)
        await until(pilot, lambda: "rule" in str(table.loading_text))
        assert table.loading_text == "Looking for bottlenecks: rule 23 of 62, 1 finding so far…"
        await pilot.press("5")
        await until(pilot, lambda: app.current_mode == "findings" and app.screen_of("findings").up_to_date)
        there = app.screen.query_one("#finding-list", Table)
        assert there.loading_text == table.loading_text
        may_end.set()
        await settle(pilot)
        assert there.loading_text is None
        assert there.rows


def test_errors_of_the_other_process_are_raised_here(sample: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Run, "directory", "/nowhere")
    with pytest.raises(InputError, match="nowhere"):
        FindApart()(sample)


def test_looking_for_bottlenecks_can_be_given_up(sample: Run) -> None:
    find, threads = FindApart(), QuestionThreads()
    looking = threads.submit(find, sample)
    while find._process is None and not looking.done():
        threads.all_ended(0.01)
    find.stop(sample)
    assert isinstance(looking.exception(30), StaleError)


def test_the_first_answer_is_computed_once_for_a_run(sample: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Run] = []

    def failing(run: Run) -> Overview:
        raise InputError("broken")

    def counted(run: Run) -> Overview:
        asked.append(run)
        return overview(run)

    with open_run(sample.directory) as run, open_run(sample.directory) as other:
        monkeypatch.setattr("explorer.analysis.key_figures.overview", failing)
        with pytest.raises(InputError):
            first_answer(run)
        monkeypatch.setattr("explorer.analysis.key_figures.overview", counted)
        assert first_answer(run) is first_answer(run)
        assert first_answer(other) is not first_answer(run)
        assert asked == [run, other]
