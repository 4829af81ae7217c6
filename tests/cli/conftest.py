"""No test of the command line touches the user's own cache or state, or depends on the terminal it runs in."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def _own_folders(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    folder: Path = tmp_path_factory.mktemp("xdg")
    for name in ("XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(folder / name.lower()))
    # Nor does the width of the terminal that the tests run in decide what they see.
    monkeypatch.delenv("COLUMNS", raising=False)
