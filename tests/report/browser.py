"""A real headless Chromium: opens a file and says what the page became, what it logged, and what it asked for."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

_HOST_OF_BROWSER = re.compile(r"https?://([\w-]+\.)*(google|googleapis|gvt1)\.com/")


@dataclass(frozen=True)
class Opened:
    dom: str
    console: list[str]
    requests: list[str]


def chromium() -> str:
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if not found:
        pytest.skip("no Chromium here; install the system's package chromium to run this")
    return found


def open_page(page: Path, work: Path, *, width: int = 1200) -> Opened:
    """Load a file with a clock that runs ahead until the page is quiet."""
    log = work / "net.json"
    done = subprocess.run(
        [
            chromium(), "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-quic",
            "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-extensions",
            "--disable-features=NetworkTimeServiceQuerying,OptimizationHints,MediaRouter",
            "--enable-logging=stderr", "--log-level=0", f"--user-data-dir={work / 'profile'}", f"--log-net-log={log}",
            f"--window-size={width},900", "--virtual-time-budget=15000", "--dump-dom", page.as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )  # fmt: skip
    console = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    return Opened(done.stdout, console, _requests(log))


def _requests(log: Path) -> list[str]:
    """URLs of requests that would leave this machine, by the browser's own network log."""
    text = log.read_text()
    if not text.rstrip().endswith("}"):
        text = text.rstrip().rstrip(",") + "]}"
    events = json.loads(text)["events"]
    urls = {
        event["params"]["url"]
        for event in events
        if isinstance(event.get("params"), dict) and "url" in event["params"]
    }
    outside = (url for url in urls if url.startswith(("http:", "https:", "ws:", "wss:")))
    # The browser itself asks its maker for updates and the time, whatever page is open.
    return sorted(url for url in outside if not _HOST_OF_BROWSER.match(url))
