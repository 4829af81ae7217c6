"""One sample run for all tests of the terminal UI, and an app on it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from explorer.analysis.run import Run, open_run
from explorer.tui.app import ExplorerApp
from tests.tui.sample_run import write_sample_run


@pytest.fixture(scope="session")
def sample_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the runs `sample` (two ranks, a device) and `host_only` (one rank, none)."""
    folder = tmp_path_factory.mktemp("runs")
    write_sample_run(folder / "sample")
    write_sample_run(folder / "host_only", ranks=1, device=False)
    return folder


@pytest.fixture(scope="session")
def sample(sample_folder: Path) -> Run:
    return open_run(sample_folder / "sample")


@pytest.fixture
def make_app(
    sample_folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Callable[..., ExplorerApp]:
    """Makes an app on a run, in a fixed working directory and with its own state folder."""
    monkeypatch.chdir(sample_folder)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))

    def make(run: str = "sample", **options: object) -> ExplorerApp:
        return ExplorerApp(lambda: open_run(run), run, **options)  # type: ignore[arg-type]

    return make
