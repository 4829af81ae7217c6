"""Texts that can be stored: Python names bytes that are not UTF-8 (a file's name on Linux) by letters that have no UTF-8 form."""

from __future__ import annotations

from typing import Any


def utf8_text(text: str) -> str:
    """The text itself where it has a UTF-8 form; else with what has none escaped: the byte 0xff of a file's name as `\\xff`,
    any other lone surrogate as `\\ud800`."""
    if text.isascii():
        return text
    try:
        return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    except UnicodeEncodeError:
        return text.encode("utf-8", "backslashreplace").decode("utf-8")


def utf8_value(value: Any) -> Any:
    """The same for every text in a value made of lists and mappings."""
    if isinstance(value, str):
        return utf8_text(value)
    if isinstance(value, dict):
        return {utf8_value(key): utf8_value(item) for key, item in value.items()}
    return [utf8_value(item) for item in value] if isinstance(value, list | tuple) else value
