"""The real program in a real terminal: a tmux session driven by keys."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
WAIT_SECONDS = 60.0
_NUMBER = count()

pytestmark = pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")


class Terminal:
    """A tmux server of its own with one window."""

    def __init__(self, folder: Path, term: str) -> None:
        # A server of its own: the one before may still be ending.
        self.socket = str(folder / f"tmux-{next(_NUMBER)}.sock")
        environment = {
            **os.environ,
            "TERM": term,
            "XDG_STATE_HOME": str(folder),
            "PS1": "ready$ ",
            "LC_ALL": "C.UTF-8",
        }
        # The size comes from the terminal: pytest-xdist tells its workers a fixed one.
        for name in ("TMUX", "COLUMNS", "LINES"):
            environment.pop(name, None)
        subprocess.run(
            [
                "tmux",
                "-S",
                self.socket,
                "-f",
                "/dev/null",
                "new-session",
                "-d",
                "-x",
                "100",
                "-y",
                "30",
                "sh",
            ],
            env=environment,
            cwd=folder,
            check=True,
        )

    def call(self, *words: str) -> str:
        return subprocess.run(
            ["tmux", "-S", self.socket, *words], capture_output=True, text=True, check=True
        ).stdout

    def send(self, *keys: str) -> None:
        self.call("send-keys", *keys)

    def screen(self) -> str:
        return self.call("capture-pane", "-p")

    def wait_for(self, *texts: str) -> str:
        end = time.monotonic() + WAIT_SECONDS
        while time.monotonic() < end:
            shown = self.screen()
            if all(text in shown for text in texts):
                return shown
            time.sleep(0.1)
        raise AssertionError(f"{texts} did not appear in {WAIT_SECONDS} s:\n{self.screen()}")

    def wait_gone(self, text: str) -> None:
        end = time.monotonic() + WAIT_SECONDS
        while text in self.screen():
            assert time.monotonic() < end, f"{text} did not go in {WAIT_SECONDS} s:\n{self.screen()}"
            time.sleep(0.1)

    def resize_until(self, width: int, height: int, *texts: str) -> None:
        """Resize until the program shows the texts: on a busy machine one of two signals in a row can be lost."""
        end = time.monotonic() + WAIT_SECONDS
        while time.monotonic() < end:
            self.call("resize-window", "-x", str(width - 1), "-y", str(height))
            time.sleep(0.5)
            self.call("resize-window", "-x", str(width), "-y", str(height))
            patience = time.monotonic() + 8
            while time.monotonic() < patience:
                if all(text in self.screen() for text in texts):
                    return
                time.sleep(0.1)
        raise AssertionError(f"{texts} did not appear at {width}x{height}:\n{self.screen()}")

    def close(self) -> None:
        subprocess.run(["tmux", "-S", self.socket, "kill-server"], capture_output=True, check=False)


@pytest.fixture
def terminal(sample_folder: Path) -> Iterator[Terminal]:
    terminal = Terminal(sample_folder, "xterm-256color")
    yield terminal
    terminal.close()


def program(*words: str) -> str:
    return shlex.join([sys.executable, "-m", "explorer.cli.main", *words])


def test_a_session_by_keys_leaves_the_terminal_as_it_was(terminal: Terminal) -> None:
    terminal.send(f"PYTHONPATH={ROOT} {program('./sample')}; echo code=$?", "Enter")
    shown = terminal.wait_for("Where a step's time goes", "Saves about", "train.py", "Quit")
    assert "2 × Test GPU" in shown
    terminal.send("2")
    terminal.wait_for("stream 7", "python main", "colour: category")
    terminal.send(".")
    terminal.wait_for("DataLoader", "0 to 20.0 ms")
    terminal.send("/")
    terminal.send("allreduce_sum", "Enter")
    terminal.wait_for("1 of 6", "ncclDevKernel_AllReduce_Sum_f32")
    terminal.send("3")
    terminal.wait_for("def train_step", "loss.backward()")
    terminal.send("9")
    terminal.wait_for("SELECT file, line", "FROM lines")
    terminal.send("C-r")
    terminal.wait_for("8 rows in")
    # A lone Escape is told from the start of a sequence by waiting: the next key comes when it has been.
    terminal.send("Escape")
    terminal.wait_for(" i Edit ")
    terminal.send("?")
    terminal.wait_for("Help", "One read-only statement")
    terminal.send("Escape")
    terminal.wait_gone("One read-only statement")
    terminal.send("q")
    shown = terminal.wait_for("code=0")
    assert "Traceback" not in shown
    terminal.send("echo still-$((40+2))", "Enter")
    terminal.wait_for("still-42")


def test_resizing_a_real_terminal(terminal: Terminal) -> None:
    terminal.send(f"PYTHONPATH={ROOT} {program('./sample')}; echo code=$?", "Enter")
    terminal.wait_for("Where a step's time goes", "Saves about")
    terminal.call("resize-window", "-x", "80", "-y", "24")
    terminal.wait_for("Where a step's time goes", "6 Mem", "Quit")
    terminal.resize_until(160, 50, "6 Memory", "step 5", "Quit")
    terminal.send("q")
    terminal.wait_for("code=0")


def test_a_terminal_of_sixteen_colours_gets_no_others(terminal: Terminal) -> None:
    start = f"env -u COLORTERM TERM=xterm-16color PYTHONPATH={ROOT} {program('./sample')}; echo code=$?"
    terminal.send(start, "Enter")
    terminal.wait_for("Where a step's time goes", "Saves about", "train.py", "Quit")
    for key, text in (("1", "Device busy"), ("2", "stream 7"), ("7", "All ranks"), ("8", "gpu utilisation")):
        terminal.send(key)
        terminal.wait_for(text)
        styles = re.findall(r"\x1b\[([0-9;]*)m", terminal.call("capture-pane", "-e", "-p"))
        assert any(code in style.split(";") for style in styles for code in ("92", "93", "94"))
        assert not any(
            style.startswith(("38;", "48;")) or ";38;" in style or ";48;" in style for style in styles
        )
    terminal.send("q")
    terminal.wait_for("code=0")


def test_quitting_does_not_wait_for_a_query(terminal: Terminal) -> None:
    terminal.send(f"PYTHONPATH={ROOT} {program('./sample', '--screen', 'sql')}; echo code=$?", "Enter")
    terminal.wait_for("2 × Test GPU", "FROM lines ORDER BY")
    terminal.send("F7")
    terminal.send("-l", "SELECT count(*) FROM range(3000000) a, range(3000000) b")
    terminal.send("C-r")
    terminal.wait_for("Esc cancels")
    terminal.send("C-q")
    shown = terminal.wait_for("code=0")
    assert "Traceback" not in shown


def test_an_unreadable_run_gives_one_line_and_the_code(terminal: Terminal) -> None:
    terminal.send(f"PYTHONPATH={ROOT} {program('./nowhere')}; echo code=$?", "Enter")
    shown = terminal.wait_for("code=3")
    assert "nowhere does not exist" in " ".join(shown.split())
    assert "Traceback" not in shown


def test_without_a_terminal_it_says_what_to_do(sample_folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "explorer.cli.main", "open", "./sample"],
        capture_output=True,
        text=True,
        cwd=sample_folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.DEVNULL,
        check=False,
    )
    assert done.returncode == 2
    assert "--screenshot" in done.stderr
    assert done.stdout == ""
