"""The commands and programs of README and quickstart run as they stand."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```(bash|python)\n(.*?)^```", re.MULTILINE | re.DOTALL)

pytest.importorskip("torch")


def blocks(page: str) -> list[tuple[str, str]]:
    """Language and text of each block of commands or Python, in order."""
    return BLOCK.findall((ROOT / page).read_text())


@pytest.mark.parametrize("page", ["README.md", "docs/quickstart.md"])
def test_snippets_run(page: str, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "OMP_NUM_THREADS": "1",
        "XDG_STATE_HOME": str(tmp_path / "state"),
    }
    found = blocks(page)
    assert {language for language, _ in found} == {"bash", "python"}
    for language, text in found:
        if language == "python":
            (tmp_path / "snippet.py").write_text(text)
            lines = [f"{sys.executable} snippet.py"]
        else:
            lines = [line for line in text.splitlines() if not line.startswith(("pip ", "make "))]
        for line in lines:
            done = subprocess.run(
                ["bash", "-c", line],
                cwd=tmp_path,
                env=environment,
                capture_output=True,
                text=True,
                timeout=240,
                check=False,
            )
            assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"
            assert done.stdout.strip(), line


def test_readme_is_short_and_shows_pictures_that_exist() -> None:
    text = (ROOT / "README.md").read_text()
    assert len(text.splitlines()) < 260
    pictures = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", text)
    assert pictures
    assert all((ROOT / picture).stat().st_size > 10_000 for picture in pictures)
