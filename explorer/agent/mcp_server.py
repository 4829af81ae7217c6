"""The MCP server: the query API as tools, the schema and docs as resources, and prompts for the usual questions.

Built on the official SDK (package `mcp`). Runs are opened once and kept; every answer fits a token budget.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations
from pydantic import Field

import explorer
from explorer.agent import api
from explorer.agent.document import Document
from explorer.agent.guide import guide_text
from explorer.agent.mcp_errors import PlainErrors
from explorer.agent.prompts import COMPARE_RUNS, FIND_BOTTLENECK, INSTRUCTIONS
from explorer.model.errors import ExplorerError, UsageError

if TYPE_CHECKING:
    from explorer.analysis.run import Run

DEFAULT_TOKENS = 2000

RunName = Annotated[
    str | None, Field(description="Run directory; leave out for the run the server was started with")
]
Limit = Annotated[int, Field(ge=1, le=1000, description="Most rows")]
Cursor = Annotated[str | None, Field(description="next_cursor of the page before")]
Tokens = Annotated[
    int,
    Field(
        ge=100,
        le=50_000,
        description="Token budget of the answer; rows that do not fit are left for the next page",
    ),
]

_READ_ONLY = ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)


class OpenRuns:
    """The runs a server may read: those it was started with, or any when it was started without."""

    def __init__(self, directories: Sequence[str]) -> None:
        self.directories = [os.path.abspath(directory) for directory in directories]
        self._open: dict[str, Run] = {}

    def get(self, name: str | None) -> Run:
        """An open run. Raises UsageError without a name where there is no single default, or for one not served."""
        if name is None:
            if len(self.directories) != 1:
                known = ", ".join(self.directories) or "none"
                raise UsageError("Say which run.", f"Runs of this server: {known}.")
            name = self.directories[0]
        path = os.path.abspath(name)
        if self.directories and path not in self.directories:
            raise UsageError(f"This server does not serve '{name}'.", f"Runs: {', '.join(self.directories)}.")
        if path not in self._open:
            from explorer.analysis.run import open_run

            self._open[path] = open_run(path)
        return self._open[path]

    def add(self, directory: str) -> None:
        """Serve a run made while the server runs."""
        self.directories.append(os.path.abspath(directory))

    def close(self) -> None:
        for run in self._open.values():
            run.close()


def build_server(directories: Sequence[str], *, allow_record: bool = False) -> MCPServer[Any]:
    """The server over the given runs. `allow_record` adds the tools that start programs and import files."""
    runs = OpenRuns(directories)
    server = PlainErrors(
        "neuron-explorer", version=explorer.__version__, instructions=INSTRUCTIONS, log_level="WARNING"
    )
    _add_reading_tools(server, runs)
    if allow_record:
        from explorer.agent.mcp_record import add_recording_tools

        add_recording_tools(server, runs)

    @server.resource(
        "neuron-explorer://schema",
        mime_type="application/json",
        description="Every table and view that sql can name",
    )
    def relations() -> str:
        return api.schema(runs.get(None)).to_json()

    @server.resource(
        "neuron-explorer://schema/{name}",
        mime_type="application/json",
        description="The columns of one table or view",
    )
    def columns(name: str) -> str:
        return api.schema(runs.get(None), name).to_json()

    @server.resource(
        "neuron-explorer://guide",
        mime_type="text/plain",
        description="How to use the tools, what units mean, and every rule with what it needs",
    )
    def guide() -> str:
        return guide_text()

    @server.prompt(
        title="Find the bottleneck", description="Find what makes a program slow and say what to change"
    )
    def find_the_bottleneck(run: str = "") -> str:
        return FIND_BOTTLENECK.format(run=f" of {run}" if run else "")

    @server.prompt(title="Compare two runs", description="Say what changed between two runs, and why")
    def compare_two_runs(before: str, after: str) -> str:
        return COMPARE_RUNS.format(before=before, after=after)

    return server


def _add_reading_tools(server: MCPServer[Any], runs: OpenRuns) -> None:
    def tool(function: Callable[..., str]) -> None:
        server.tool(annotations=_READ_ONLY, structured_output=False)(function)

    def summary(
        run: RunName = None, limit: Limit = 15, cursor: Cursor = None, max_tokens: Tokens = DEFAULT_TOKENS
    ) -> str:
        """How long a step takes and where its time goes, one row per rank. Times in this API are ns, shares 0 to 1."""
        return _answer(api.summary, runs, run, max_tokens, limit=limit, cursor=cursor)

    def bottlenecks(
        run: RunName = None, limit: Limit = 5, cursor: Cursor = None, max_tokens: Tokens = 1500
    ) -> str:
        """START HERE. What to change, worst first: the line, why, what to do, and the saving per step to expect."""
        return _answer(api.bottlenecks, runs, run, max_tokens, limit=limit, cursor=cursor)

    def finding(
        finding_id: Annotated[str, Field(description="id of a finding")],
        run: RunName = None,
        max_tokens: Tokens = DEFAULT_TOKENS,
    ) -> str:
        """One finding whole: evidence with the SQL that reproduces its numbers, events, caveats."""
        return _answer(api.finding, runs, run, max_tokens, finding_id=finding_id)

    def lines(
        run: RunName = None,
        file: Annotated[str | None, Field(description="Keep one file")] = None,
        limit: Limit = 15,
        cursor: Cursor = None,
        max_tokens: Tokens = DEFAULT_TOKENS,
    ) -> str:
        """Source lines by cost. cost_ns: its Python time and all ops it is responsible for, their backward included."""
        return _answer(api.lines, runs, run, max_tokens, limit=limit, cursor=cursor, file=file)

    def source(
        file: str,
        around: Annotated[int | None, Field(description="Line number to show the surroundings of")] = None,
        run: RunName = None,
        cursor: Cursor = None,
        max_tokens: Tokens = DEFAULT_TOKENS,
    ) -> str:
        """The program's text as it ran, with the cost of each line."""
        return _answer(api.source, runs, run, max_tokens, file=file, around=around, cursor=cursor)

    def ops(
        run: RunName = None, limit: Limit = 15, cursor: Cursor = None, max_tokens: Tokens = DEFAULT_TOKENS
    ) -> str:
        """Framework ops by host and device time."""
        return _answer(api.ops, runs, run, max_tokens, limit=limit, cursor=cursor)

    def kernels(
        run: RunName = None, limit: Limit = 15, cursor: Cursor = None, max_tokens: Tokens = DEFAULT_TOKENS
    ) -> str:
        """Device work by name: kernels, copies, communication."""
        return _answer(api.kernels, runs, run, max_tokens, limit=limit, cursor=cursor)

    def breakdown(
        run: RunName = None, limit: Limit = 15, cursor: Cursor = None, max_tokens: Tokens = DEFAULT_TOKENS
    ) -> str:
        """wall = compute + exposed communication + exposed copies + idle, per rank, device and step, exactly."""
        return _answer(api.breakdown, runs, run, max_tokens, limit=limit, cursor=cursor)

    def critical_path(
        run: RunName = None, limit: Limit = 10, cursor: Cursor = None, max_tokens: Tokens = DEFAULT_TOKENS
    ) -> str:
        """What a step's time is made of, by kind and by line. Only time on this path can make a step shorter."""
        return _answer(api.critical_path, runs, run, max_tokens, limit=limit, cursor=cursor)

    def what_if(
        run: RunName = None,
        speedup: Annotated[
            list[str], Field(description="line=model.py:57:2x, op=aten::mm:2x, phase=optimizer:3x ...")
        ] = [],  # noqa: B006
        remove: Annotated[list[str], Field(description="sync, data, gc, io, or line=FILE:LINE ...")] = [],  # noqa: B006
        overlap: Annotated[list[str], Field(description="copies, collectives")] = [],  # noqa: B006
        max_tokens: Tokens = DEFAULT_TOKENS,
    ) -> str:
        """Predict the step time with changes by replaying the dependency graph."""
        return _answer(api.what_if, runs, run, max_tokens, speedup=speedup, remove=remove, overlap=overlap)

    def event(
        event_id: Annotated[str, Field(description="RANK:EVENT_ID")],
        run: RunName = None,
        max_tokens: Tokens = DEFAULT_TOKENS,
    ) -> str:
        """One event: its line, call chain, shapes, what enqueued it and what it enqueued."""
        return _answer(api.event, runs, run, max_tokens, event_id=event_id)

    def compare(
        before: Annotated[str, Field(description="Run directory")],
        after: Annotated[str, Field(description="Run directory")],
        by: Annotated[str, Field(description="kind, phase, module, line, op or kernel")] = "line",
        limit: Limit = 10,
        cursor: Cursor = None,
        max_tokens: Tokens = DEFAULT_TOKENS,
    ) -> str:
        """What changed between two runs: step time, a verdict against noise, and the changes that explain it."""

        def between(run: Run, **named: Any) -> Document:
            return api.compare(run, runs.get(after), **named)

        return _answer(between, runs, before, max_tokens, by=by, limit=limit, cursor=cursor)

    def health(
        run: RunName = None, limit: Limit = 15, cursor: Cursor = None, max_tokens: Tokens = DEFAULT_TOKENS
    ) -> str:
        """What is missing or doubtful in this run, and which answers it makes less certain."""
        return _answer(api.health, runs, run, max_tokens, limit=limit, cursor=cursor)

    def schema(
        name: Annotated[str | None, Field(description="A table or view; leave out for the list")] = None,
        run: RunName = None,
        cursor: Cursor = None,
        max_tokens: Tokens = DEFAULT_TOKENS,
    ) -> str:
        """Tables and views that sql can name, or the columns of one."""
        return _answer(api.schema, runs, run, max_tokens, name=name, cursor=cursor)

    def sql(
        text: Annotated[str, Field(description="One read-only DuckDB statement")],
        run: RunName = None,
        limit: Limit = 50,
        cursor: Cursor = None,
        max_tokens: Tokens = DEFAULT_TOKENS,
    ) -> str:
        """Ask anything: one SELECT over the run's tables and views (see schema). Read-only, 30 s at most."""
        return _answer(api.sql, runs, run, max_tokens, text=text, limit=limit, cursor=cursor)

    for function in (
        bottlenecks, summary, finding, lines, source, ops, kernels, breakdown, critical_path, what_if, compare, event,
        health, schema, sql,
    ):  # fmt: skip
        tool(function)


def _answer(
    function: Callable[..., Document], runs: OpenRuns, run: str | None, max_tokens: int, **named: Any
) -> str:
    """Within the token budget, and with our errors as one line the agent can act on."""
    try:
        return function(runs.get(run), **named).to_json(max_tokens)
    except ExplorerError as error:
        raise ToolError(str(error)) from None
