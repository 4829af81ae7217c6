"""`neuron-explorer`: finds the verb, loads only its module, and turns every error into one line and an exit code."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import explorer
from explorer.model.errors import (
    EXIT_DONE,
    EXIT_UNREADABLE,
    EXIT_USAGE,
    ExplorerError,
    InputError,
    UsageError,
)

if TYPE_CHECKING:
    import typer

PROGRAM = "neuron-explorer"
EXIT_INTERRUPTED = 130
"""As shells report a program ended by Ctrl-C."""
EXIT_PIPE_CLOSED = 141
"""As shells report a program whose reader has gone."""
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class Verb(NamedTuple):
    """One verb: `module` holds a function `command` whose annotated parameters are the options and whose docstring is
    the help; it returns None or an exit code. A module may set CONTEXT_SETTINGS for the option parser."""

    module: str
    group: str
    help: str


VERBS: dict[str, Verb] = {
    "record": Verb("record", "Record", "Run a program as it is and record it"),
    "import": Verb("import_", "Record", "Turn traces into a run"),
    "open": Verb("open", "Read", "The terminal UI; also neuron-explorer RUN"),
    "summary": Verb("summary", "Read", "The few numbers that say how a run does"),
    "bottlenecks": Verb("bottlenecks", "Read", "What costs most, which line, what to do, what it saves"),
    "lines": Verb("lines", "Read", "What each source line costs"),
    "source": Verb("source", "Read", "A source file with what each line cost beside it"),
    "ops": Verb("ops", "Read", "Framework ops by name"),
    "kernels": Verb("kernels", "Read", "Kernels, copies and collectives by name"),
    "modules": Verb("modules", "Read", "Time by nn.Module"),
    "steps": Verb("steps", "Read", "Each step of each rank"),
    "breakdown": Verb("breakdown", "Read", "Where each step's time goes on each device"),
    "gaps": Verb("gaps", "Read", "When a device did nothing, and why"),
    "launches": Verb("launches", "Read", "How far ahead of the device the host was"),
    "critical-path": Verb("critical_path", "Read", "The chain of work that the step time is made of"),
    "what-if": Verb("what_if", "Read", "What a step would take with something faster, gone or overlapped"),
    "ranks": Verb("ranks", "Read", "Which rank holds the job up, and why"),
    "roofline": Verb("roofline", "Read", "What each op achieved against what the device could do"),
    "memory": Verb("memory", "Read", "Allocated and reserved memory"),
    "health": Verb("health", "Read", "What is missing, broken, repaired or doubtful"),
    "query": Verb("query", "Read", "SQL over a run, read-only and bounded"),
    "report": Verb("report", "Share", "The answers as one HTML file, or Markdown"),
    "export": Verb("export", "Share", "A run as a file for Perfetto, speedscope, spreadsheets, Prometheus"),
    "diff": Verb("diff", "Compare", "What changed between two runs, and what explains it"),
    "check": Verb("check", "Compare", "Hold a run to its budget: a gate for CI"),
    "schema": Verb("schema", "Look after runs", "Every table, view and column, with its meaning"),
    "verify": Verb("verify", "Look after runs", "Whether a run is whole and of the documented form"),
    "cache": Verb("cache", "Look after runs", "What imported traces take, and how to remove them"),
    "mcp": Verb("mcp", "Agents", "Serve runs to agents over the Model Context Protocol"),
    "demo": Verb("demo", "Set up", "Record a real training program here and show what it says"),
    "doctor": Verb("doctor", "Set up", "What this machine can record, and what it cannot and why"),
}
"""Every verb, in the order of `--help`. A new verb is one file in this package and one line here."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code: 0 done, 1 a check failed, 2 usage, 3 unreadable, 4 partial."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    _harden_output()
    try:
        code = _run(given)
        sys.stdout.flush()
        return code
    except ExplorerError as error:
        _say(f"{error}")
        return error.exit_code
    except KeyboardInterrupt:
        _say("interrupted.")
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        return _read_enough(given)
    except SystemExit as error:
        # Parser and console end the program themselves where a pipe is closed.
        if isinstance(error.__context__, BrokenPipeError):
            return _read_enough(given)
        raise
    except OSError as error:
        if error.errno not in _NO_ROOM:
            return _usage_or_crash(error, given)
        if error.filename is None:
            _close_output()
        what = error.filename or "the output"
        _say(f"Cannot write {what}: {error.strerror}. Free some space, or write elsewhere.")
        return EXIT_USAGE
    except Exception as error:
        return _usage_or_crash(error, given)


def _read_enough(given: Sequence[str]) -> int:
    """The reader (head, less) has seen enough: done. Of a gate nobody has seen the outcome: it has not passed."""
    _close_output()
    return EXIT_PIPE_CLOSED if given[:1] == ["check"] else EXIT_DONE


def _close_output() -> None:
    """Python would complain once more when it closes a standard output that cannot be written."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run(given: list[str]) -> int:
    if not given or given[0] in ("--help", "-h") or given == ["help"]:
        print(_help())
        return EXIT_DONE
    if given[0] in ("--version", "-V"):
        print(f"{PROGRAM} {explorer.__version__}")
        return EXIT_DONE
    if given[0] == "help":
        given = [given[1], "--help"]
    if given[0] in VERBS:
        return run_verb(given[0], given[1:])
    if given[0].startswith("-"):
        raise UsageError(f"Unknown option {given[0]}.", f"See {PROGRAM} --help.")
    if os.path.exists(given[0]) or "/" in given[0] or os.sep in given[0]:
        return run_verb("open", given)
    raise _unknown(given[0])


def run_verb(name: str, given: list[str]) -> int:
    """Load one verb's module and run it. Parser errors and ExplorerErrors are raised to `main`."""
    code = _parser(name)(args=given, prog_name=f"{PROGRAM} {name}", standalone_mode=False)
    return code if isinstance(code, int) else EXIT_DONE


def verb_options(name: str) -> list[str]:
    """Every option of a verb in its long form (`--limit`), but for `--help`."""
    import typer

    command = typer.main.get_command(_parser(name))
    options = [
        option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)
    ]
    return [option for option in options if option.startswith("--") and option != "--help"]


def _parser(name: str) -> typer.Typer:
    from importlib import import_module

    import typer
    from typer.core import TyperCommand

    class VerbCommand(TyperCommand):
        def collect_usage_pieces(self, ctx: Any) -> list[str]:
            return [plain_usage(piece) for piece in super().collect_usage_pieces(ctx)]

        def format_options(self, ctx: Any, formatter: Any) -> None:
            from explorer.cli.plain_help import write_parameters

            write_parameters(self, ctx, formatter)

        def invoke(self, ctx: Any) -> Any:
            from explorer.cli.wrong_call import empty_option

            if option := empty_option(self, ctx):
                raise UsageError(f"The value of {option} is empty.", "Give one, or leave the option out.")
            return super().invoke(ctx)

    module = import_module(f"explorer.cli.{VERBS[name].module}")
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    settings = {"help_option_names": ["-h", "--help"], **getattr(module, "CONTEXT_SETTINGS", {})}
    app.command(name, cls=VerbCommand, context_settings=settings)(module.command)
    return app


def plain_usage(piece: str) -> str:
    """An argument as usage lines write it: the parser marks required ones with braces, and lists twice."""
    if piece.startswith("{"):
        inner, _, rest = piece[1:].rpartition("}")
        return inner if inner.endswith("...") else inner + rest
    if piece.startswith("[["):
        return piece[1:].removesuffix("...").removesuffix("]")
    return piece


def _unknown(word: str) -> ExplorerError:
    from difflib import get_close_matches

    if not word.strip():
        return UsageError("The verb or path is empty.", f"See {PROGRAM} --help.")

    if close := get_close_matches(word, VERBS, n=1):
        return UsageError(f"{word} is neither a verb nor a path.", f"Did you mean: {PROGRAM} {close[0]}?")
    if "." in word:
        return InputError(f"{word} does not exist.")
    return UsageError(f"{word} is neither a verb nor a path.", f"See {PROGRAM} --help.")


def _help() -> str:
    lines = [
        f"{PROGRAM} {explorer.__version__}: why a PyTorch program is slow, which line, and what to change.",
        "",
        f"  {PROGRAM} record -- python train.py     record a program as it is",
        f"  {PROGRAM} bottlenecks RUN               what costs most, which line, what to do",
        f"  {PROGRAM} RUN                           the terminal UI (a path named like a verb: ./report)",
        "",
        "RUN is a run directory, or a trace, which is imported to a cache first.",
    ]
    width = max(len(name) for name in VERBS)
    group = ""
    for name, verb in VERBS.items():
        if verb.group != group:
            group = verb.group
            lines += ["", f"{group}:"]
        lines.append(f"  {name:<{width}}  {verb.help}")
    lines += [
        "",
        f"Options of a verb: {PROGRAM} VERB --help. Version: --version. Every reading verb has --json.",
        "Exit codes: 0 done, 1 a check failed, 2 usage, 3 input could not be read, 4 part of it was lost or repaired.",
    ]
    return "\n".join(lines)


def _usage_or_crash(error: Exception, given: list[str]) -> int:
    from explorer.cli.wrong_call import is_of_parser, sentence

    if is_of_parser(error):
        verb = f" {given[0]}" if given and given[0] in VERBS else ""
        _say(f"{sentence(error)}. See {PROGRAM}{verb} --help.")
        return EXIT_USAGE
    if type(error).__name__ == "Abort":
        return EXIT_INTERRUPTED
    if os.environ.get("NE_DEBUG"):
        raise error
    from explorer.cli.crash import write_crash_report

    path = write_crash_report(error, given)
    where = f"Details are in {path}" if path else "Set NE_DEBUG=1 to see where"
    _say(
        f"{type(error).__name__}: {' '.join(str(error).split())[:300] or 'no message'}. This is a bug. {where}."
    )
    return EXIT_UNREADABLE


def _say(message: str) -> None:
    from explorer.cli.units import harmless

    print(f"{PROGRAM}: {harmless(' '.join(message.splitlines()))}", file=sys.stderr)


def _harden_output() -> None:
    """Names in traces may hold any text: an unencodable character must not end the program, nor a closed output."""
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


if __name__ == "__main__":
    sys.exit(main())
