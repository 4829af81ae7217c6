"""Arguments of the query API, which come from programs and models: one of a wrong type is a UsageError that names it."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from numbers import Integral
from typing import ParamSpec

from explorer.agent.document import Document
from explorer.model.errors import UsageError

P = ParamSpec("P")


def _whole(value: object) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def _text(value: object) -> bool:
    return isinstance(value, str)


def _texts(value: object) -> bool:
    return isinstance(value, list | tuple | set | frozenset) and all(isinstance(item, str) for item in value)


_KINDS: dict[str, tuple[Callable[[object], bool], str]] = {
    "int": (_whole, "a whole number"),
    "int | None": (lambda value: value is None or _whole(value), "a whole number"),
    "str": (_text, "a text"),
    "str | None": (lambda value: value is None or _text(value), "a text"),
    "Iterable[str]": (_texts, "a list of texts"),
}
"""What a parameter takes, by its annotation as it is written"""


def typed(verb: Callable[P, Document]) -> Callable[P, Document]:
    """The verb, raising UsageError for an argument that is not of the type of its parameter."""
    signature = inspect.signature(verb)
    kinds = {
        name: _KINDS[parameter.annotation]
        for name, parameter in signature.parameters.items()
        if parameter.annotation in _KINDS
    }

    @wraps(verb)
    def checked(*args: P.args, **kwargs: P.kwargs) -> Document:
        for name, value in signature.bind(*args, **kwargs).arguments.items():
            if name in kinds and not kinds[name][0](value):
                raise UsageError(f"{name} {value!r} is not {kinds[name][1]}.")
        return verb(*args, **kwargs)

    return checked
