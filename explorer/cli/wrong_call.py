"""What is wrong with a call, in one sentence that names the option and what was given: for errors of the option parser.

The parser's errors are known by what they have and not by their class, which moves between its versions.
"""

from __future__ import annotations

from typing import Any

_WANTED = {
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "float_parsing": "a number",
    "finite_number": "a finite number",
    "greater_than_equal": "at least {ge}",
    "less_than_equal": "at most {le}",
}


def is_of_parser(error: Exception) -> bool:
    """Whether the option parser raised it."""
    return hasattr(error, "format_message") and hasattr(error, "exit_code")


def sentence(error: Any) -> str:
    """The sentence, without full stop."""
    option, detail = _option(error), _detail(error)
    if option and detail is not None:
        given = _shown(detail.get("input"))
        if wanted := _WANTED.get(str(detail.get("type"))):
            return f"{option} must be {wanted.format(**detail.get('ctx', {}))}, not {given}"
        if detail.get("type") == "value_error":
            # "'xml' is not one of 'table', 'csv', 'json'."
            said = str(detail.get("msg", "")).removeprefix("Value error, ").rstrip(".")
            _, found, choices = said.partition(" is not one of ")
            if found:
                return f"{option} must be one of {choices.replace(chr(39), '')}, not {given}"
    said = str(error.format_message()).rstrip(".")
    # Near names are worth naming; the help is not near anything.
    return said.removesuffix(" (Possible options: --help)")


def _option(error: Any) -> str:
    names = getattr(getattr(error, "param", None), "opts", None) or []
    return max(names, key=len, default="")


def _detail(error: Any) -> dict[str, Any] | None:
    """The first thing that the validator behind the parser found, where there is one."""
    errors = getattr(error.__context__, "errors", None)
    found = errors() if callable(errors) else None
    return found[0] if found and isinstance(found[0], dict) else None


def _shown(value: object) -> str:
    text = str(value)
    return f"'{text}'" if not text.strip() or text != text.strip() else text


def empty_option(parser: Any, context: Any) -> str:
    """The name of an option that was given an empty text, as an unset shell variable leaves it; "" where none was."""
    for parameter in parser.params:
        value = context.params.get(parameter.name)
        given = getattr(context.get_parameter_source(parameter.name), "name", "") == "COMMANDLINE"
        empty = value == "" or (isinstance(value, list | tuple) and "" in value)
        if given and empty and parameter.param_type_name == "option":
            return max(parameter.opts, key=len)
    return ""
