"""Masking secrets in command lines before they are stored."""

from __future__ import annotations

import re
from collections.abc import Sequence

MASK = "***"

_NAME = re.compile(
    r"(?i)(pass(word|wd|phrase)?|secret|token|credential|api[-_]?key|access[-_]?key|private[-_]?key|auth)"
)
_VALUE = re.compile(
    r"(?i)^(hf_[a-z0-9]{16,}|gh[pousr]_[a-z0-9]{16,}|sk-[a-z0-9_-]{16,}|AKIA[0-9A-Z]{12,}|xox[baprs]-[a-z0-9-]{10,}"
    r"|eyJ[a-z0-9_-]{10,}\.[a-z0-9_-]{10,}\.[a-z0-9_-]*|bearer\s+\S{8,})$"
)
_URL = re.compile(r"(?i)([a-z][a-z0-9+.-]*://[^/\s:@]*):[^@\s/]+@")
_QUERY = re.compile(r"(?i)([?&](?:[^=&\s]*(?:token|secret|signature|password|key)[^=&\s]*)=)[^&\s]+")


def mask_secrets(command: Sequence[str]) -> list[str]:
    """The command line with values of secret-looking options, known token formats and URL passwords replaced."""
    result: list[str] = []
    hide_next = False
    for word in command:
        if hide_next and not word.startswith("-"):
            result.append(MASK)
            hide_next = False
            continue
        hide_next = False
        name, equals, value = word.partition("=")
        if equals and _NAME.search(name):
            result.append(f"{name}={MASK}")
            continue
        if word.startswith("-") and not equals and _NAME.search(word):
            hide_next = True
            result.append(word)
            continue
        if _VALUE.match(word) or (equals and _VALUE.match(value)):
            result.append(f"{name}={MASK}" if equals else MASK)
            continue
        result.append(_QUERY.sub(rf"\1{MASK}", _URL.sub(rf"\1:{MASK}@", word)))
    return result
