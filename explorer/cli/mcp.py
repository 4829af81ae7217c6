"""`mcp`: serve runs to agents over the Model Context Protocol."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from explorer.model.errors import MissingExtra, UsageError

TOKEN_VARIABLE = "NE_MCP_TOKEN"
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


def command(
    runs: Annotated[
        list[str] | None, typer.Argument(metavar="[RUN]...", help="Runs or traces to serve; none: any run")
    ] = None,
    http: Annotated[
        bool, typer.Option("--http", help="Streamable HTTP instead of standard input and output")
    ] = False,
    host: Annotated[str, typer.Option(help="Address for --http")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port for --http", min=0, max=65535)] = 8765,
    allow_record: Annotated[
        bool, typer.Option("--allow-record", help="Let agents record programs and import files")
    ] = False,
) -> int:
    """Serve runs to agents over the Model Context Protocol, on standard input and output by default.

    Over HTTP it listens on the loopback address only, unless the environment variable NE_MCP_TOKEN holds a token, which
    clients must then send as a bearer token.
    """
    try:
        from explorer.agent.mcp_server import build_server
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] in ("mcp", "mcp_types", "pydantic"):
            raise MissingExtra("mcp", "mcp", "The MCP server") from None
        raise
    from explorer.cli.source_run import run_directory

    token = os.environ.get(TOKEN_VARIABLE, "")
    if http and host not in _LOOPBACK and not token:
        raise UsageError(
            f"Without a token the server listens on the loopback address only, not on {host}.",
            f"Set {TOKEN_VARIABLE} to a secret that clients send as a bearer token.",
        )
    server = build_server([run_directory(run)[0] for run in runs or ()], allow_record=allow_record)
    if http:
        from explorer.agent.mcp_http import serve

        serve(server, host, port, token)
    else:
        server.run("stdio")
    return 0
