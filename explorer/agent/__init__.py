"""The query API in JSON terms, and the MCP server."""
