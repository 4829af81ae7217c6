"""Names of files and folders made of what a user names: a program, a trace or a run."""

from __future__ import annotations

import os
import re

_UNDECODED = re.compile("[\ud800-\udfff]")
_ENDINGS = re.compile(
    r"(?i)(\.pt)?(\.trace)?(\.json|\.pickle|\.pkl|\.sqlite|\.db|\.xplane\.pb)?(\.gz|\.zst|\.zip)?$"
)
_PATTERN = re.compile(r"[*?\[\]]+")


def run_name(name: str, otherwise: str) -> str:
    """The name, with `_` for bytes that are not UTF-8, where no run can lie; `otherwise` for an empty one."""
    return _UNDECODED.sub("_", name) or otherwise


def name_of_source(path: str, otherwise: str) -> str:
    """The last part of the path of a trace or run, without a trace's endings and the characters of a pattern."""
    last = os.path.basename(os.path.abspath(path) if "://" not in path else path.rstrip("/"))
    return run_name(_PATTERN.sub("", _ENDINGS.sub("", last)), otherwise)
