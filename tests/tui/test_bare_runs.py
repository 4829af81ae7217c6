"""Runs that hold little or nothing: every screen says so, and every key works on it."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.pilot import Pilot

from explorer.analysis.run import open_run
from explorer.tui.app import ExplorerApp
from explorer.tui.modes import SCREENS
from explorer.tui.screenshot import settle
from tests.tui.bare_runs import TABLES, write_bare_run
from tests.tui.waiting import until

NOTHING = {
    "overview": "This run holds no events. Record at least one step, or import a trace that holds one.",
    "timeline": "This rank holds no events.",
    "source": "No line of this file is known.",
    "ops": "This run holds no framework ops.",
    "findings": "The run holds no events",
    "memory": "No allocations are known in this run. Record with profile_memory=True.",
    "ranks": "This run has one rank: there is nothing to compare it with.",
    "counters": "No counters: this run holds no telemetry. Record with telemetry on.",
    "sql": "Ctrl+R runs the query.",
    "compare": "Nothing to compare with yet: press o and give a run or a trace.",
}
SAID: dict[str, dict[str, str]] = {
    "nothing": NOTHING,
    "counters": NOTHING | {"ranks": "This run holds no steps.", "counters": "Counters   1 over 4.00 µs"},
    "device": NOTHING
    | {
        "overview": "whole recording, no steps in it",
        "timeline": "cuda:0 stream 7",
        "findings": "The run holds no framework ops",
    },
    "host": NOTHING
    | {
        "overview": "whole recording, no steps in it",
        "timeline": "python main",
        "ops": "aten::add",
        "findings": "The run holds no device kernels",
    },
}
"""What each screen says of each run"""
LEAVING = {"quit", "app.quit"}


def shown(app: ExplorerApp) -> str:
    """The text of the picture."""
    strips = app.screen._compositor.render_strips()
    return "\n".join("".join(segment.text for segment in strip) for strip in strips)


async def press_every_key(app: ExplorerApp, pilot: Pilot[None], name: str) -> set[str]:
    """Press each key that works on a screen, from that screen each time; returns the actions that were run."""
    screen, done = app.screen_of(name), set()
    for key, (_, binding, _, _) in list(screen.active_bindings.items()):
        if binding.action in LEAVING or binding.action.startswith("go("):
            continue
        await pilot.press(key)
        await until(pilot, lambda: not app.moving)
        while app.screen is not screen:
            app.pop_screen() if app.screen.is_modal else app.switch_mode(name)
            await pilot.pause()
        done.add(binding.action)
    return done


@pytest.mark.parametrize("run", TABLES)
async def test_every_screen_says_what_is_missing_and_every_key_works(
    run: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    directory = write_bare_run(tmp_path / run, run)
    app = ExplorerApp(lambda: open_run(directory), run)
    async with app.run_test(size=(110, 30)) as pilot:
        await settle(pilot)
        for name in SCREENS:
            app.switch_mode(name)
            await settle(pilot)
            assert SAID[run][name] in shown(app), name
            done = await press_every_key(app, pilot, name)
            await settle(pilot)
            assert {"help", "next_theme", "all_keys"} <= done or name == "sql"
            assert len(done) >= 4, name
            assert app.crash is None
