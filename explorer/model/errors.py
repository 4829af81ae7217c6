"""Errors a user can cause: one line each, saying what happened, why, and what to do, with a defined exit code."""

from __future__ import annotations

EXIT_DONE = 0
EXIT_CHECK_FAILED = 1
EXIT_USAGE = 2
EXIT_UNREADABLE = 3
EXIT_PARTIAL = 4


class ExplorerError(Exception):
    """Base of all errors shown to users.

    Args:
        message: what happened, with the reason.
        remedy: what to do about it, or "".
    """

    exit_code = EXIT_UNREADABLE

    def __init__(self, message: str, remedy: str = "") -> None:
        self.message = " ".join(message.split())
        self.remedy = " ".join(remedy.split())
        super().__init__(f"{self.message} {self.remedy}".strip())


class UsageError(ExplorerError):
    """The call itself is wrong: an unknown name, an impossible value, an unwritable output (exit code 2)."""

    exit_code = EXIT_USAGE


class InputError(ExplorerError):
    """The input could not be read (exit code 3)."""

    exit_code = EXIT_UNREADABLE


class QueryError(UsageError):
    """An SQL text was refused or failed."""


class CheckFailed(ExplorerError):
    """A `check` found a regression (exit code 1)."""

    exit_code = EXIT_CHECK_FAILED


class MissingExtra(UsageError):
    """A package of an optional extra is not installed."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(
            f"{purpose} needs the package {package}, which is not installed.",
            f'Install it with: pip install "neuron-explorer[{extra}]"',
        )
