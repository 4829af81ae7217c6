"""What an agent reads when a call is wrong: one short line that says what to do, whatever was given."""

from __future__ import annotations

from typing import Any

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ResourceError, ToolError, UnexpectedToolError
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS
from pydantic import ValidationError

from explorer.model.errors import ExplorerError

LONGEST = 600
"""Characters of an error. Of longer ones the middle is left out: what to do stands at the end."""

LONGEST_VALUE = 60


def shortened(text: str, longest: int = LONGEST) -> str:
    """On one line, cut in the middle."""
    # Only as much as may be shown is looked at of what may be very long.
    if len(text) > 4 * longest:
        text = text[: 2 * longest] + text[-2 * longest :]
    line = " ".join(text.split())
    if len(line) <= longest:
        return line
    tail = longest // 3
    return f"{line[: longest - tail - 3]} … {line[-tail:]}"


class PlainErrors(MCPServer[Any]):
    """An MCP server whose errors are short."""

    async def call_tool(self, name: str, arguments: dict[str, Any], context: Any = None) -> Any:
        """As MCPServer's. Raises ToolError with a line that says what to do."""
        tools = {tool.name: tool for tool in await self.list_tools()}
        if name not in tools:
            raise ToolError(
                f"There is no tool '{shortened(name, LONGEST_VALUE)}'. Tools: {', '.join(sorted(tools))}."
            )
        takes = tools[name].input_schema.get("properties", {})
        for given in arguments:
            if given not in takes:
                known = ", ".join(takes)
                raise ToolError(f"{name} takes no '{shortened(given, LONGEST_VALUE)}'. It takes: {known}.")
        try:
            return await super().call_tool(name, arguments, context)
        except UnexpectedToolError as error:
            cause = error.__cause__ or error
            raise ToolError(
                shortened(f"{name} failed on these arguments ({type(cause).__name__}: {cause}). Try others.")
            ) from cause
        except ToolError as error:
            if isinstance(error.__cause__, ValidationError):
                raise ToolError(_wrong_argument(name, error.__cause__)) from None
            raise ToolError(shortened(str(error).removeprefix(f"Error executing tool {name}: "))) from None

    async def get_prompt(
        self, name: str, arguments: dict[str, Any] | None = None, context: Any = None
    ) -> Any:
        """As MCPServer's. Raises MCPError with a line that says what to do."""
        prompts = {prompt.name: prompt for prompt in await self.list_prompts()}
        if name not in prompts:
            known = ", ".join(sorted(prompts))
            raise MCPError(
                INVALID_PARAMS, f"There is no prompt '{shortened(name, LONGEST_VALUE)}'. Prompts: {known}."
            )
        for argument in prompts[name].arguments or []:
            if argument.required and argument.name not in (arguments or {}):
                raise MCPError(INVALID_PARAMS, f"The prompt {name} needs '{argument.name}'.")
        short = {key: shortened(str(value)) for key, value in (arguments or {}).items()}
        return await super().get_prompt(name, short, context)

    async def read_resource(self, uri: Any, context: Any = None) -> Any:
        """As MCPServer's. Raises MCPError with a line that says what to do."""
        try:
            return await super().read_resource(uri, context)
        except ResourceError as error:
            told: BaseException | None = error
            while told is not None and not isinstance(told, ExplorerError):
                told = told.__cause__
            known = ", ".join(
                [
                    *(str(item.uri) for item in await self.list_resources()),
                    *(item.uri_template for item in await self.list_resource_templates()),
                ]
            )
            text = str(told) if told else f"There is no resource '{shortened(str(uri), LONGEST_VALUE)}'."
            raise MCPError(INVALID_PARAMS, shortened(f"{text} Resources: {known}.")) from None


def _wrong_argument(tool: str, error: ValidationError) -> str:
    """The first of them, with what it should be and what was given."""
    errors = error.errors(include_url=False, include_context=False)
    if missing := [str(one["loc"][-1]) for one in errors if one["type"] == "missing"]:
        return f"{tool} needs " + " and ".join(f"'{name}'" for name in missing) + "."
    first = errors[0]
    name = ".".join(str(part) for part in first["loc"]) or "the arguments"
    wanted = first["msg"].removeprefix("Input should be ").split(", unable to")[0]
    return f"{name} should be {wanted}, not {shortened(repr(first['input']), LONGEST_VALUE)}."
