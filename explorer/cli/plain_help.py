"""Arguments and options as the help lists them: `--limit N`, not the parser's `--limit <int range>` and `x>=0`."""

from __future__ import annotations

import re
from typing import Any

_TYPE = re.compile(r" ?<([^<>]*)>")
_RANGE = re.compile(r"(?:; )?-?\d*(?:\.\d+)?<?=?x[<>]=?-?\d+(?:\.\d+)?")
_NUMBERS = ("int", "float")


def plain_record(name: str, text: str, *, is_argument: bool) -> tuple[str, str]:
    """The left and right side of a line of the help. Types of arguments say nothing; ranges are said where they are missed."""

    def shown(found: re.Match[str]) -> str:
        kind = found[1].removeprefix("list[").removesuffix("]").removesuffix(" range")
        if is_argument:
            return ""
        return " N" if kind in _NUMBERS else " TEXT" if kind == "str" else f" {kind}"

    return _TYPE.sub(shown, name), _RANGE.sub("", text).replace("  []", "").replace("[; ", "[")


def write_parameters(parser: Any, context: Any, formatter: Any) -> None:
    """The sections Arguments and Options of a verb's help."""
    sections: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
    for parameter in parser.get_params(context):
        record = parameter.get_help_record(context)
        if record is not None:
            is_argument = parameter.param_type_name == "argument"
            section = sections["Arguments" if is_argument else "Options"]
            section.append(plain_record(*record, is_argument=is_argument))
    for title, records in sections.items():
        if records:
            with formatter.section(title):
                formatter.write_dl(records)
