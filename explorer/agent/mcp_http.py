"""The MCP server over streamable HTTP: on loopback, or behind a bearer token."""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from mcp.server import MCPServer

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


class BearerToken:
    """ASGI middleware: every request must carry `Authorization: Bearer <token>`, else it is answered 401."""

    def __init__(self, app: Callable[[Scope, Receive, Send], Awaitable[None]], token: str) -> None:
        self._app = app
        self._expected = f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = dict(scope["headers"]).get(b"authorization", b"")
        if hmac.compare_digest(given, self._expected):
            await self._app(scope, receive, send)
            return
        headers = [(b"content-type", b"text/plain"), (b"www-authenticate", b"Bearer")]
        await send({"type": "http.response.start", "status": 401, "headers": headers})
        await send({"type": "http.response.body", "body": b"A bearer token is required.\n"})


def serve(server: MCPServer[Any], host: str, port: int, token: str) -> None:
    """Serve until interrupted, at http://HOST:PORT/mcp."""
    import uvicorn

    app: Any = server.streamable_http_app(host=host)
    uvicorn.run(BearerToken(app, token) if token else app, host=host, port=port, log_level="warning")
