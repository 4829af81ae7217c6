"""The MCP server in a process of its own, asked by the SDK's own client."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from tests.agent.conftest import write_run

mcp = pytest.importorskip("mcp", reason="the mcp extra is not installed")

from mcp import Client, StdioServerParameters  # noqa: E402
from mcp.client.stdio import stdio_client  # noqa: E402

MAIN = [sys.executable, "-m", "explorer.cli.main", "mcp"]


def client(*arguments: str) -> Client:
    return Client(stdio_client(StdioServerParameters(command=MAIN[0], args=[*MAIN[1:], *arguments])))


async def test_a_session_over_stdio(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    async with client(run) as session:
        tools = {tool.name: tool for tool in (await session.list_tools()).tools}
        assert len(tools) <= 15
        assert all(tool.description and tool.annotations.read_only_hint for tool in tools.values())
        assert "record" not in tools
        answer = await session.call_tool("bottlenecks", {})
        document = json.loads(answer.content[0].text)
        assert document["schema"] == "neuron-explorer/findings-brief/1"
        assert document["findings"][0]["lines"][0]["line"] == 9
        wrong = await session.call_tool("sql", {"text": "SELECT * FROM evnts"})
        assert wrong.is_error
        assert "Did you mean events" in wrong.content[0].text
        refused = await session.call_tool("sql", {"text": "COPY events TO '/tmp/x.csv'"})
        assert refused.is_error
        outside = await session.call_tool("summary", {"run": str(tmp_path / "other")})
        assert outside.is_error
        assert "does not serve" in outside.content[0].text
        budget = await session.call_tool("steps" if "steps" in tools else "breakdown", {"max_tokens": 200})
        assert json.loads(budget.content[0].text)["next_cursor"] is not None
        prompt = await session.get_prompt("find_the_bottleneck", {})
        assert "bottlenecks" in prompt.messages[0].content.text
        assert {prompt.name for prompt in (await session.list_prompts()).prompts} == {
            "find_the_bottleneck",
            "compare_two_runs",
        }
        both = await session.get_prompt("compare_two_runs", {"before": "a", "after": "b"})
        assert "before=a and after=b" in both.messages[0].content.text
        guide = await session.read_resource("neuron-explorer://guide")
        assert "- host_sync: " in guide.contents[0].text
        resource = await session.read_resource("neuron-explorer://schema/events")
        assert json.loads(resource.contents[0].text)["name"] == "events"


async def test_two_runs_are_compared(tmp_path: Path) -> None:
    before, after = write_run(tmp_path / "before"), write_run(tmp_path / "after", python_us=500)
    async with client(before, after) as session:
        unnamed = await session.call_tool("bottlenecks", {})
        assert unnamed.is_error
        assert "Say which run" in unnamed.content[0].text
        answer = await session.call_tool("compare", {"before": before, "after": after})
        document = json.loads(answer.content[0].text)
        assert document["verdict"]["answer"] == "slower"
        assert document["changes"][0]["key"] == "train.py:7"
        outside = await session.call_tool("compare", {"before": before, "after": str(tmp_path / "other")})
        assert outside.is_error


async def test_recording_tools_only_when_allowed(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    async with client(run, "--allow-record") as session:
        assert {"record", "import_trace"} <= {tool.name for tool in (await session.list_tools()).tools}


async def test_an_agent_records_and_reads_what_it_recorded(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    program = tmp_path / "tiny.py"
    program.write_text(
        "import torch\nfor _ in range(3):\n    y = torch.ones(8) @ torch.ones(8, 2)\nprint('done')\n"
    )
    async with client(write_run(tmp_path / "run"), "--allow-record") as session:
        arguments = {"command": [sys.executable, str(program)], "directory": str(tmp_path / "made")}
        answer = await session.call_tool("record", arguments)
        made = json.loads(answer.content[0].text)
        assert made["exit_code"] == 0
        assert "done" in made["output"]
        ops = json.loads((await session.call_tool("ops", {"run": made["run"]})).content[0].text)
        assert "aten::matmul" in [row["name"] for row in ops["rows"]]
        trace = tmp_path / "trace.json"
        event = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 1.0, "dur": 5.0}
        trace.write_text(json.dumps({"schemaVersion": 1, "traceEvents": [event]}))
        arguments = {"source": str(trace), "directory": str(tmp_path / "read")}
        imported = json.loads((await session.call_tool("import_trace", arguments)).content[0].text)
        rows = json.loads((await session.call_tool("ops", {"run": imported["run"]})).content[0].text)["rows"]
        assert [row["name"] for row in rows] == ["aten::mm"]


def test_http_beyond_loopback_needs_a_token(tmp_path: Path) -> None:
    done = subprocess.run(
        [*MAIN, "--http", "--host", "0.0.0.0"], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 2
    assert "NE_MCP_TOKEN" in done.stderr


async def test_http_with_a_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = write_run(tmp_path / "run")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    monkeypatch.setenv("NE_MCP_TOKEN", "secret")
    server = subprocess.Popen([*MAIN, run, "--http", "--port", str(port)], stderr=subprocess.PIPE)
    url = f"http://127.0.0.1:{port}/mcp"
    try:
        status = None
        for _ in range(300):
            try:
                urllib.request.urlopen(url, timeout=5)
            except urllib.error.HTTPError as error:
                status = error.code
                break
            except OSError:
                time.sleep(0.1)
        assert status == 401
        import httpx2
        from mcp.client.streamable_http import streamable_http_client

        headers = {"Authorization": "Bearer secret"}
        async with (
            httpx2.AsyncClient(headers=headers) as http,
            Client(streamable_http_client(url, http_client=http)) as session,
        ):
            answer = await session.call_tool("summary", {})
            assert json.loads(answer.content[0].text)["rows"][0]["steps"] == 10
    finally:
        server.terminate()
        server.wait(30)
