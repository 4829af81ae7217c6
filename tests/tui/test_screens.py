"""What each screen shows and does, key by key."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from textual.widgets import Input, TabbedContent

from explorer.tui.app import ExplorerApp
from explorer.tui.screens.health import HealthScreen
from explorer.tui.screenshot import settle
from explorer.tui.widgets.code import Code
from explorer.tui.widgets.flame import Flame
from explorer.tui.widgets.heat_map import HeatMap
from explorer.tui.widgets.plot import Plots
from explorer.tui.widgets.sql_editor import SqlEditor
from explorer.tui.widgets.stacked_bar import StackedBar
from explorer.tui.widgets.step_bars import StepBars
from explorer.tui.widgets.table import Table
from explorer.tui.widgets.timeline import TimelineView
from tests.tui.sample_run import START, STEP_NS
from tests.tui.waiting import until

Make = Callable[..., ExplorerApp]


def text_of(app: ExplorerApp, selector: str) -> str:
    return str(app.screen.query_one(selector).render())


async def test_overview_adds_up_and_names_lines(make_app: Make) -> None:
    app = make_app()
    async with app.run_test(size=(120, 36)) as pilot:
        await settle(pilot)
        parts = app.screen.query_one(StackedBar).parts
        assert sum(part.duration_ns for part in parts) == STEP_NS
        assert {part.key for part in parts} == {"compute", "communication", "copy", "idle"}
        rows = app.screen.query_one("#findings", Table).rows
        assert rows
        assert all(row["saving_ns"] > 0 for row in rows)
        assert any(str(row["where"]).startswith("train.py:") for row in rows)


async def test_overview_drills_into_finding_source_and_step(make_app: Make) -> None:
    app = make_app()
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        first = app.screen.query_one("#findings", Table).rows[0]
        await pilot.press("enter")
        await settle(pilot)
        assert app.current_mode == "findings"
        assert first["title"] in text_of(app, "#finding-text")
        assert "Do this" in text_of(app, "#finding-text")
        await pilot.press("1", "e")
        await settle(pilot)
        assert app.current_mode == "source"
        code = app.screen.query_one(Code)
        assert code.line is not None
        assert code.line.number == first["line"]
        await pilot.press("1")
        await settle(pilot)
        await pilot.click("#story-steps", offset=(30, 3))
        await settle(pilot)
        assert app.current_mode == "timeline"
        view = app.screen.query_one(TimelineView)
        assert (view.start_ns, view.end_ns) == (START + 3 * STEP_NS, START + 4 * STEP_NS)


async def test_overview_shows_every_step_and_every_rank_as_a_bar(make_app: Make) -> None:
    app = make_app()
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        bars = app.screen.query_one(StepBars)
        assert not bars.display
        await pilot.press("b")
        await settle(pilot)
        assert bars.display
        assert [bar.step for bar in bars.steps] == [0, 1, 2, 3, 4, 5]
        await pilot.press("b")
        await settle(pilot)
        assert [(bar.rank, sum(bar.parts.values())) for bar in bars.steps] == [(0, STEP_NS), (1, STEP_NS)]
        await pilot.click("#story-steps", offset=(20, 1))
        await settle(pilot)
        assert {bar.rank for bar in bars.steps} == {1}
        await pilot.press("b", "b")
        await settle(pilot)
        assert app.screen.query_one("#findings", Table).has_focus


async def test_overview_of_a_host_only_run_explains_the_host(make_app: Make) -> None:
    app = make_app("host_only")
    async with app.run_test(size=(120, 36)) as pilot:
        await settle(pilot)
        parts = {part.key: part.duration_ns for part in app.screen.query_one(StackedBar).parts}
        assert sum(parts.values()) == STEP_NS
        assert parts["data"] == 5_000_000
        assert {"op", "python"} <= set(parts)


async def test_a_tall_terminal_shows_the_costliest_lines_too(make_app: Make) -> None:
    app = make_app()
    async with app.run_test(size=(120, 60)) as pilot:
        await settle(pilot)
        lines = app.screen.query_one("#top-lines", Table)
        assert lines.display
        assert lines.rows[0]["where"] == "train.py:12"
        lines.focus()
        await pilot.press("enter")
        await settle(pilot)
        assert app.current_mode == "source"


async def test_health_says_what_is_doubtful(make_app: Make) -> None:
    app = make_app()
    async with app.run_test(size=(120, 36)) as pilot:
        await settle(pilot)
        await pilot.press("h")
        await settle(pilot)
        assert isinstance(app.screen, HealthScreen)
        assert "Input shapes were recorded in one window only." in text_of(app, "#health-text")
        await pilot.press("escape")
        await pilot.pause()
        assert app.current_mode == "overview"


async def test_source_shows_costs_and_follows_callers(make_app: Make) -> None:
    app = make_app(screen="source")
    async with app.run_test(size=(140, 44)) as pilot:
        await settle(pilot)
        code = app.screen.query_one(Code)
        assert code.file is not None
        assert code.file.complete
        assert len(code.file.lines) == 23
        assert code.line is not None
        assert code.line.number == 12  # the costliest line
        assert code.line.costs is not None
        kernels = app.screen.query_one("#line-kernels", Table).rows
        assert {row["name"] for row in kernels} >= {"ampere_sgemm_128x64_tn", "ampere_sgemm_64x64_nt"}
        await pilot.press("c", "c")
        await settle(pilot)
        assert app.screen.query_one(TabbedContent).active == "callers"
        callers = app.screen.query_one("#line-callers", Table)
        assert [row["where"] for row in callers.rows] == ["train.py:16"]
        callers.focus()
        await pilot.press("enter")
        await settle(pilot)
        assert code.line.number == 16
        await pilot.press("n")
        assert code.line.number == 17


async def test_source_opens_the_editor_at_the_line(make_app: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    from explorer.tui.screens import source

    opened: list[tuple[str, int]] = []
    monkeypatch.setattr(source, "open_editor", lambda app, file, line, roots: opened.append((file, line)))
    app = make_app(screen="source")
    async with app.run_test(size=(120, 36)) as pilot:
        await settle(pilot)
        await pilot.press("e")
    assert opened == [("train.py", 12)]


async def test_tables_filter_and_look_up(make_app: Make) -> None:
    app = make_app(screen="ops")
    async with app.run_test(size=(140, 40)) as pilot:
        await settle(pilot)
        await pilot.press("r")
        await settle(pilot)
        kernels = app.screen.query_one("#kernels", Table)
        assert kernels.rows[0]["name"] == "ampere_sgemm_128x64_tn"
        assert len(kernels.rows[0]["per_step"]) == 6
        await pilot.press("slash", *"nccl")
        await pilot.pause()
        # One row per device.
        assert [row["name"] for row in kernels.rows] == ["ncclDevKernel_AllReduce_Sum_f32"] * 2
        await pilot.press("enter", "enter")
        await settle(pilot)
        assert app.current_mode == "timeline"
        view = app.screen.query_one(TimelineView)
        assert view.timeline is not None
        assert view.selected is not None
        assert view.timeline.name(view.selected) == "ncclDevKernel_AllReduce_Sum_f32"
        await pilot.press("4", "escape", "m")
        await settle(pilot)
        assert app.screen.query_one("#modules", Table).rows[0]["tree"] == "(model)"
        await pilot.press("i", "enter")
        await settle(pilot)
        assert app.current_mode == "source"


async def test_flame_graph_zooms_and_comes_back(make_app: Make) -> None:
    app = make_app(screen="ops")
    async with app.run_test(size=(120, 36)) as pilot:
        await settle(pilot)
        await pilot.press("f")
        await settle(pilot)
        flame = app.screen.query_one(Flame)
        assert flame.root is not None
        assert flame.root.total_ns == 2 * 6 * STEP_NS
        await pilot.press("down", "down", "enter")
        await pilot.pause()
        assert len(flame.zoomed) == 2
        inner = flame.zoomed[-1]
        assert inner.total_ns < flame.root.total_ns
        await pilot.press("backspace")
        assert len(flame.zoomed) == 1
        await pilot.press("e")
        await settle(pilot)
        assert app.current_mode == "source"


async def test_findings_run_their_sql_in_place_and_take_it_along(make_app: Make) -> None:
    app = make_app(screen="findings")
    async with app.run_test(size=(140, 40)) as pilot:
        await settle(pilot)
        listed = app.screen.query_one("#finding-list", Table)
        assert listed.rows[-1]["title"].endswith("not checked, and why")
        await pilot.press("end")
        await pilot.pause()
        assert "Rules this run cannot answer" in text_of(app, "#finding-text")
        await pilot.press("home")
        await pilot.press("x")
        await until(pilot, lambda: app.screen.query("#sql-status") and " in " in text_of(app, "#sql-status"))
        await settle(pilot)
        assert app.current_mode == "findings"
        assert " in " in text_of(app, "#sql-status")
        result, editor = app.screen.query_one("#sql-result", Table), app.screen.query_one(SqlEditor)
        assert result.rows
        assert editor.has_focus
        editor.load_text("SELECT 42 AS answer")
        await pilot.press("ctrl+r")
        await settle(pilot)
        assert [dict(row) for row in result.rows] == [{"answer": 42}]
        await pilot.press("escape", "X")
        await settle(pilot)
        assert app.current_mode == "sql"
        assert app.screen.query_one(SqlEditor).text == "SELECT 42 AS answer"
        await pilot.press("5", "escape")
        await until(pilot, lambda: listed.has_focus)
        assert listed.has_focus
        assert not app.screen.query_one("#finding-sql").display


async def test_what_if_a_line_were_faster(make_app: Make) -> None:
    app = make_app(screen="findings")
    async with app.run_test(size=(140, 40)) as pilot:
        await settle(pilot)
        assert "as it is" in text_of(app, "#finding-what-if")
        await pilot.press(*["plus"] * 9)
        await settle(pilot)
        gone = text_of(app, "#finding-what-if")
        assert "gone" in gone
        assert "20.0 ms → " in gone
        await pilot.press(*["minus"] * 3)
        await settle(pilot)
        twice = text_of(app, "#finding-what-if")
        assert "twice as fast" in twice
        assert "saves" in twice
        await pilot.press("down")
        await pilot.pause()
        assert "as it is" in text_of(app, "#finding-what-if")


async def test_memory_explains_the_peak(make_app: Make) -> None:
    app = make_app(screen="memory")
    async with app.run_test(size=(120, 36)) as pilot:
        await settle(pilot)
        assert "1.41 GiB" in text_of(app, "#memory-title")
        (line,) = app.screen.query_one("#memory-lines", Table).rows
        assert (line["what"], line["size_bytes"], line["blocks"]) == ("train.py:12", 420 << 20, 6)
        rows = {r["what"]: r["size_bytes"] for r in app.screen.query_one("#memory-categories", Table).rows}
        assert rows == {"activation": 420 << 20, "allocated unseen": 1 << 30}
        (band,) = app.screen.query_one(Plots).bands
        assert max(v for v in band.values if v is not None) == (1 << 30) + (420 << 20)
        await pilot.press("m")
        assert [row["what"] for row in app.screen.query_one("#memory-lines", Table).rows] == [
            "no module known"
        ]
        await pilot.press("m")
        assert sum(r["size_bytes"] for r in app.screen.query_one("#memory-lines", Table).rows) == 420 << 20
        await pilot.press("d")
        assert "cuda:1, rank 1" in text_of(app, "#memory-title")


async def test_a_run_without_memory_or_counters_says_how_to_get_them(make_app: Make) -> None:
    app = make_app("host_only", screen="memory")
    async with app.run_test(size=(120, 36)) as pilot:
        await settle(pilot)
        plot = app.screen.query_one(Plots)
        shown = "\n".join("".join(s.text for s in plot.render_line(y)) for y in range(3))
        assert "profile_memory=True" in shown


async def test_ranks_name_the_slow_one_and_every_measure(make_app: Make) -> None:
    app = make_app(screen="ranks")
    async with app.run_test(size=(120, 36)) as pilot:
        await settle(pilot)
        assert "Rank 1 computes" in text_of(app, "#ranks-sentence")
        heat = app.screen.query_one(HeatMap)
        # Ranks differ in compute: that is what is shown first.
        assert heat.texts[1][2] == "5.56 ms"
        await pilot.press("down", "right", "right")
        assert (heat.rank, heat.step) == (1, 2)
        assert "rank 1, step 2   compute 5.56 ms" in text_of(app, "#ranks-status")
        assert heat.shares[1][2] == 1.0
        assert heat.shares[0][2] == 0.0
        seen = {}
        for _ in range(7):
            await pilot.press("m")
            seen[heat.scale[2]] = heat.texts[1][3]
        assert len(seen) == 7
        assert seen["The training thread waited for the next batch."] == "9.00 ms"
        await pilot.press("enter")
        await settle(pilot)
        view = app.screen.query_one(TimelineView)
        assert view.timeline is not None
        assert view.timeline.rank == 1
        assert view.start_ns == START + 2 * STEP_NS


async def test_ranks_that_hold_the_others_up_are_named_with_their_line(
    make_app: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    from explorer.analysis import rank_view
    from explorer.analysis.ranks.stragglers import Cause, Straggler

    cause = Cause("python", None, "train.py", 17, "train_step", "loss.backward()", 3_000_000)
    late = Straggler(1, 5, 6, 4_000_000, 0.2, "persistent", 0, 0, (cause, cause))
    monkeypatch.setattr(rank_view, "stragglers", lambda engine: [late])
    app = make_app(screen="ranks")
    async with app.run_test(size=(120, 36)) as pilot:
        await settle(pilot)
        said = "Rank 1 holds the others up by 4 ms a step (20.0%): last in 5 of 6 steps since step 0."
        assert text_of(app, "#ranks-sentence") == said
        first, second = app.screen.query_one("#late-table", Table).rows
        assert (first["how"], first["where"], first["more_ns"]) == ("5 of 6 steps", "train.py:17", 3_000_000)
        assert "delay_ns" not in second
        heat = app.screen.query_one(HeatMap)
        await until(pilot, lambda: heat.rank == 1)  # goes there once it has been laid out
        assert heat.rank == 1
        await pilot.press("r", "enter")
        await settle(pilot)
        assert app.current_mode == "source"
        code = app.screen.query_one(Code)
        assert code.line is not None
        assert code.line.number == 17


async def test_one_rank_says_so(make_app: Make) -> None:
    app = make_app("host_only", screen="ranks")
    async with app.run_test(size=(120, 36)) as pilot:
        await settle(pilot)
        assert "one rank" in text_of(app, "#ranks-sentence")


async def test_counters_are_drawn_on_the_time_of_the_steps(make_app: Make) -> None:
    app = make_app(screen="counters")
    async with app.run_test(size=(120, 36)) as pilot:
        await settle(pilot)
        plots = app.screen.query_one(Plots)
        assert [band.title for band in plots.bands] == ["gpu utilisation  telemetry", "power  telemetry"]
        assert [tick[0] for tick in plots.ticks] == [f"step {i}" for i in range(6)]
        assert plots.ticks[3][1] == pytest.approx(0.5)
        height = plots.band_height
        await pilot.press("plus")
        assert plots.band_height == height + 1


async def test_counters_and_timeline_show_the_same_time(make_app: Make) -> None:
    app = make_app(screen="timeline")
    async with app.run_test(size=(120, 36)) as pilot:
        await settle(pilot)
        view = app.screen.query_one(TimelineView)
        await pilot.press("full_stop", "full_stop", "full_stop")
        assert view.start_ns == START + 2 * STEP_NS
        await pilot.press("8")
        await settle(pilot)
        plots = app.screen.query_one(Plots)
        assert plots.ticks == [("step 2", 0.0)]
        assert (plots.label_cells, plots.cells) == (view.label_cells, view.cells)
        assert len({value for value in plots.bands[0].values if value is not None}) > 1
        await pilot.press("d")
        await settle(pilot)
        assert plots.ticks == [("step 3", pytest.approx(0.75))]
        await pilot.press("2")
        await settle(pilot)
        assert view.start_ns == START + 2 * STEP_NS + STEP_NS // 4
        await pilot.press("8", "z")
        await settle(pilot)
        assert len(plots.ticks) == 6


async def test_sql_runs_completes_remembers_and_exports(make_app: Make, tmp_path: Path) -> None:
    app = make_app(screen="sql")
    async with app.run_test(size=(140, 40)) as pilot:
        await settle(pilot)
        editor = app.screen.query_one(SqlEditor)
        editor.load_text("SELECT category, count(*) AS n FROM eve")
        editor.move_cursor(editor.document.end)
        await pilot.press("tab")
        assert editor.text.endswith("FROM event_lines")
        await pilot.press("tab", "tab")
        assert editor.text.endswith("FROM events")
        editor.insert(" GROUP BY category ORDER BY n DESC")
        await pilot.press("ctrl+r")
        await settle(pilot)
        table = app.screen.query_one("#sql-result", Table)
        counts = {row["category"]: row["n"] for row in table.rows}
        assert counts["kernel"] == 2 * 6 * (6 + 1 + 3 + 8)
        assert counts["step"] == 12
        await pilot.press("escape", "x")
        box = app.screen.query_one("#sql-input", Input)
        box.value = str(tmp_path / "out.json")
        await pilot.press("enter")
        await settle(pilot)
        written = json.loads((tmp_path / "out.json").read_text())
        assert written["columns"] == ["category", "n"]
        assert len(written["rows"]) == len(table.rows)
        await pilot.press("i")
        editor.load_text("SELECT 1")
        await pilot.press("ctrl+up")
        assert editor.text == "SELECT category, count(*) AS n FROM events GROUP BY category ORDER BY n DESC"
        await pilot.press("ctrl+down")
        assert editor.text == "SELECT 1"


@pytest.mark.parametrize("key", ["escape", "ctrl+c"])
async def test_a_running_query_is_cancelled(make_app: Make, key: str) -> None:
    app = make_app(screen="sql")
    async with app.run_test(size=(120, 36)) as pilot:
        await settle(pilot)
        app.screen.query_one(SqlEditor).load_text("SELECT count(*) FROM range(3000000) a, range(3000000) b")
        await pilot.press("ctrl+r")
        await until(pilot, lambda: "Running" in text_of(app, "#sql-status"))
        assert "Esc cancels" in text_of(app, "#sql-status")
        await pilot.press(key)
        await settle(pilot)  # ends only when the query has
        assert "Cancelled after" in text_of(app, "#sql-status")
        app.screen.query_one(SqlEditor).load_text("SELECT 7 AS seven")
        await pilot.press("ctrl+r")
        await settle(pilot)
        assert [dict(row) for row in app.screen.query_one("#sql-result", Table).rows] == [{"seven": 7}]


async def test_a_newer_query_replaces_one_that_runs(make_app: Make) -> None:
    app = make_app(screen="sql")
    async with app.run_test(size=(120, 36)) as pilot:
        await settle(pilot)
        editor = app.screen.query_one(SqlEditor)
        editor.load_text("SELECT count(*) FROM range(3000000) a, range(3000000) b")
        await pilot.press("ctrl+r")
        await until(pilot, lambda: "Running" in text_of(app, "#sql-status"))
        editor.load_text("SELECT 8 AS eight")
        await pilot.press("ctrl+r")
        await settle(pilot)
        assert [dict(row) for row in app.screen.query_one("#sql-result", Table).rows] == [{"eight": 8}]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
async def test_sql_exports_tables(make_app: Make, tmp_path: Path, ending: str) -> None:
    app = make_app(screen="sql")
    async with app.run_test(size=(140, 40)) as pilot:
        await settle(pilot)
        app.screen.query_one(SqlEditor).load_text(
            "SELECT 1 AS a, 'x,\"y' AS b UNION ALL SELECT 2, NULL ORDER BY a"
        )
        await pilot.press("ctrl+r")
        await settle(pilot)
        await pilot.press("escape", "x")
        app.screen.query_one("#sql-input", Input).value = str(tmp_path / f"out.{ending}")
        await pilot.press("enter")
        await settle(pilot)
    path = str(tmp_path / f"out.{ending}")
    if ending == "csv":
        import pyarrow.csv

        options = pyarrow.csv.ConvertOptions(strings_can_be_null=True)
        table = pyarrow.csv.read_csv(path, convert_options=options)
    else:
        import pyarrow.parquet

        table = pyarrow.parquet.read_table(path)
    assert table.to_pydict() == {"a": [1, 2], "b": ['x,"y', None]}


async def test_sql_is_coloured_in_the_theme(make_app: Make) -> None:
    app = make_app(screen="sql")
    async with app.run_test(size=(120, 36)) as pilot:
        await settle(pilot)
        editor = app.screen.query_one(SqlEditor)
        editor.load_text("SELECT 'é', sum(x)\nFROM lines -- all")
        editor.move_cursor(editor.document.end)
        await pilot.pause()

        def inks_of(y: int) -> dict[str, str]:
            strip = editor.render_line(y)
            return {
                s.text.strip(): s.style.color.name
                for s in strip
                if s.style is not None and s.style.color is not None and s.text.strip()
            }

        first, second = inks_of(0), inks_of(1)
        assert first["SELECT"] == second["FROM"]
        assert len({first["SELECT"], first["'é'"], first["sum"], second["lines"], second["-- all"]}) == 5
        await pilot.press("escape", "T")
        await pilot.pause()
        assert inks_of(0)["SELECT"] not in first.values()


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("COPY (SELECT 1) TO '/tmp/x.csv'", "SELECT"),
        ("SELECT nothing FROM events", "nothing"),
        ("", "empty"),
    ],
)
async def test_sql_says_why_a_statement_is_refused(make_app: Make, sql: str, said: str) -> None:
    app = make_app(screen="sql")
    async with app.run_test(size=(120, 36)) as pilot:
        await settle(pilot)
        app.screen.query_one(SqlEditor).load_text(sql)
        await pilot.press("ctrl+r")
        await settle(pilot)
        assert said.lower() in text_of(app, "#sql-status").lower()


async def test_compare_with_another_run(make_app: Make) -> None:
    app = make_app(screen="compare")
    async with app.run_test(size=(120, 36)) as pilot:
        await settle(pilot)
        assert "Press o" in text_of(app, "#compare-text")
        await pilot.press("o", *"host_only", "enter")
        await settle(pilot)
        shown = text_of(app, "#compare-text")
        assert "host_only" in shown
        assert "no significant change" in shown
        rows = app.screen.query_one("#compare-table", Table).rows
        assert rows
        await pilot.press("m", "m", "m")
        assert any(
            str(row["key"]).startswith("train.py")
            for row in app.screen.query_one("#compare-table", Table).rows
        )


async def test_compare_says_what_is_wrong_with_the_path(make_app: Make) -> None:
    app = make_app(screen="compare")
    async with app.run_test(size=(120, 36)) as pilot:
        await settle(pilot)
        await pilot.press("o", *"nowhere", "enter")
        await settle(pilot)
        assert "does not exist" in text_of(app, "#compare-text")
