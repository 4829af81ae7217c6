"""Opens the user's editor at a line."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

from textual.app import App, SuspendNotSupported

_PLUS_LINE = {"vi", "vim", "nvim", "nano", "emacs", "emacsclient", "kak", "micro", "joe", "ne", "mg"}
_COLON_LINE = {"hx", "helix", "subl", "zed"}
_GOTO = {"code", "code-insiders", "codium", "cursor"}


def editor_command(editor: str, file: str, line: int) -> list[str]:
    """The call that opens `file` at `line` in an editor as $EDITOR names it, by that editor's own convention."""
    words = shlex.split(editor) or ["vi"]
    program = os.path.basename(words[0])
    if program in _COLON_LINE:
        return [*words, f"{file}:{line}"]
    if program in _GOTO:
        return [*words, "--goto", f"{file}:{line}"]
    if program in _PLUS_LINE:
        return [*words, f"+{line}", file]
    return [*words, file]


def find_source(file: str, roots: list[str]) -> str | None:
    """The file on this machine: as it is, or under one of the roots; None where it is not here."""
    for candidate in [Path(file), *(Path(root) / file for root in roots)]:
        if candidate.is_file():
            return str(candidate)
    return None


def open_editor(app: App[None], file: str, line: int, roots: list[str]) -> None:
    """Suspend the app, run $VISUAL or $EDITOR (vi without either) at the line, and come back."""
    path = find_source(file, roots)
    if path is None:
        app.notify(f"{file} is not on this machine.", severity="warning", timeout=4, markup=False)
        return
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    try:
        with app.suspend():
            subprocess.run(editor_command(editor, path, line), check=False)
    except SuspendNotSupported:
        app.notify("This terminal cannot be lent to an editor.", severity="warning")
    except OSError as error:
        app.notify(f"{editor} could not be started: {error.strerror}.", severity="error", markup=False)
