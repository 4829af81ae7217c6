"""Every screen as a picture, at three sizes, against the pictures looked at and accepted before.

After a wanted change: NE_UPDATE_SNAPSHOTS=1 pytest tests/tui/test_snapshots.py, then look at the SVG files.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import pytest

from explorer.analysis.run import Run
from explorer.tui.app import ExplorerApp
from explorer.tui.modes import SCREENS
from explorer.tui.screenshot import picture, settle
from tests.tui.sample_findings import sample_findings

FOLDER = Path(__file__).parent / "snapshots"
VERSIONS = FOLDER / "versions.txt"
UPDATE = bool(os.environ.get("NE_UPDATE_SNAPSHOTS"))
SIZES = {
    (80, 24): tuple(SCREENS),
    (120, 36): tuple(SCREENS),
    (250, 70): ("overview", "timeline", "source"),
}


def drawn_by() -> str:
    return f"textual {version('textual')}, rich {version('rich')}\n"


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
async def test_screens_look_as_accepted(
    make_app: Callable[..., ExplorerApp],
    size: tuple[int, int],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if not UPDATE and VERSIONS.read_text() != drawn_by():
        pytest.skip(f"pictures were drawn by {VERSIONS.read_text().strip()}; here is {drawn_by().strip()}")
    monkeypatch.setattr(Run, "bottlenecks", lambda self: sample_findings())
    app = make_app(follow=False)
    different = []
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        for name in SIZES[size]:
            app.switch_mode(name)
            await settle(pilot)
            if name == "timeline":
                await pilot.press("full_stop", "down", "right")
                await settle(pilot)
            if name == "sql":
                # The list of tables grows with the analyses.
                app.screen.query_one("#sql-schema").display = False
                await pilot.pause()
            svg = picture(app, "neuron-explorer")
            accepted = FOLDER / f"{name}-{size[0]}x{size[1]}.svg"
            if UPDATE:
                FOLDER.mkdir(exist_ok=True)
                accepted.write_text(svg)
                VERSIONS.write_text(drawn_by())
            elif accepted.read_text() != svg:
                (tmp_path / accepted.name).write_text(svg)
                different.append(f"{tmp_path / accepted.name} differs from {accepted}")
    assert not different, "\n".join(different)


def test_pictures_need_nothing_from_elsewhere() -> None:
    for path in FOLDER.glob("*.svg"):
        text = path.read_text().replace("http://www.w3.org", "")
        assert "http" not in text
        assert "@font-face" not in text


def test_no_picture_is_left_over() -> None:
    expected = {f"{name}-{w}x{h}.svg" for (w, h), names in SIZES.items() for name in names}
    assert {path.name for path in FOLDER.glob("*.svg")} == expected
