"""Tools that make runs: only in a server started with --allow-record, since they start programs on this machine."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Annotated, Any

from mcp.server.mcpserver.exceptions import ToolError
from pydantic import Field

from explorer.model.errors import ExplorerError

if TYPE_CHECKING:
    from mcp.server import MCPServer

    from explorer.agent.mcp_server import OpenRuns

LONGEST_OUTPUT = 2000


def add_recording_tools(server: MCPServer[Any], runs: OpenRuns) -> None:
    """Add `record` and `import_trace`."""

    @server.tool(structured_output=False)
    def record(
        command: Annotated[
            list[str], Field(description="The program and its arguments, such as ['python', 'train.py']")
        ],
        directory: Annotated[str, Field(description="Where the run is written")],
        timeout_s: Annotated[int, Field(ge=1, le=3600)] = 600,
    ) -> str:
        """Run a PyTorch program under the profiler. Its own output is returned too (the end of it)."""
        full = [sys.executable, "-m", "explorer.cli.main", "record", "-o", directory, "--", *command]
        try:
            done = subprocess.run(
                full, capture_output=True, text=True, timeout=timeout_s, stdin=subprocess.DEVNULL, check=False
            )
        except subprocess.TimeoutExpired:
            raise ToolError(f"The program ran longer than {timeout_s} s and was stopped.") from None
        run = next(
            (line[5:] for line in reversed(done.stderr.splitlines()) if line.startswith("run: ")), None
        )
        if run is None:
            raise ToolError(
                f"No run was written (exit code {done.returncode}): {done.stderr[-LONGEST_OUTPUT:]}"
            )
        runs.add(run)
        return json.dumps(
            {
                "run": run,
                "exit_code": done.returncode,
                "output": done.stdout[-LONGEST_OUTPUT:],
                "errors": done.stderr[-LONGEST_OUTPUT:],
            }
        )

    @server.tool(structured_output=False)
    def import_trace(source: str, directory: str) -> str:
        """Import a trace file, or a directory of ranks, into a run."""
        from explorer.collectors.import_trace import import_trace as read

        try:
            report = read([source], directory)
        except ExplorerError as error:
            raise ToolError(str(error)) from None
        runs.add(report.directory)
        return json.dumps({"run": report.directory})
