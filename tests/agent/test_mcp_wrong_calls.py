"""Whatever an agent gives, the answer is one short line that says what to do, and the server goes on."""

from __future__ import annotations

import json
import sys
from functools import partialmethod
from typing import Any

import pytest

from tests.agent.conftest import write_run

mcp = pytest.importorskip("mcp", reason="the mcp extra is not installed")

from mcp import Client, StdioServerParameters  # noqa: E402
from mcp.client.stdio import stdio_client  # noqa: E402
from mcp.server.mcpserver.exceptions import ToolError  # noqa: E402
from mcp.shared.exceptions import MCPError  # noqa: E402

from explorer.agent.mcp_errors import LONGEST, shortened  # noqa: E402
from explorer.agent.mcp_server import build_server  # noqa: E402
from explorer.analysis.run import Run  # noqa: E402

LONG = "x" * 200_000
READS_ONLY = "is not allowed; queries only read."


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_run(tmp_path_factory.mktemp("wrong") / "run")


async def refused(directory: str, tool: str, arguments: dict[str, Any]) -> str:
    with pytest.raises(ToolError) as caught:
        await build_server([directory]).call_tool(tool, arguments)
    text = str(caught.value)
    assert len(text) <= LONGEST
    assert "\n" not in text
    return text


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        ("bottlenecks", {"limit": 0}, "limit should be greater than or equal to 1, not 0."),
        ("bottlenecks", {"limit": -5}, "limit should be greater than or equal to 1, not -5."),
        ("bottlenecks", {"limit": 10**12}, "limit should be less than or equal to 1000, not 1000000000000."),
        ("bottlenecks", {"limit": "many"}, "limit should be a valid integer, not 'many'."),
        ("bottlenecks", {"limit": None}, "limit should be a valid integer, not None."),
        ("bottlenecks", {"max_tokens": 1}, "max_tokens should be greater than or equal to 100, not 1."),
        ("bottlenecks", {"cursor": 5}, "cursor should be a valid string, not 5."),
        ("bottlenecks", {"cursor": "-1"}, "'-1' is not a cursor. Pass the next_cursor of the page before."),
        ("bottlenecks", {"extra": 1}, "bottlenecks takes no 'extra'. It takes: run, limit, cursor, max_tokens."),
        ("finding", {}, "finding needs 'finding_id'."),
        ("finding", {"finding_id": "no"}, "There is no finding 'no' in this run. Findings: host_sync/9."),
        ("compare", {}, "compare needs 'before' and 'after'."),
        ("compare", {"before": "DIRECTORY", "after": "DIRECTORY", "by": "zodiac"}, "Cannot compare by 'zodiac'."),
        ("source", {"file": "../../etc/passwd"}, "No line of this run lies in '../../etc/passwd'. Files: train.py."),
        ("source", {"file": "train.py", "around": 999}, "Line 999 is not near any line of 'train.py'. It has lines 1 to 12."),
        ("what_if", {}, "Nothing to change. Give speedup, remove or overlap."),
        ("what_if", {"speedup": "op=aten::mm:2x"}, "speedup should be a valid list, not 'op=aten::mm:2x'."),
        ("what_if", {"speedup": ["op=aten::mm:" + "9" * 400 + "x"]}, "the factor is too large."),
        ("what_if", {"remove": ["event=x:1"]}, "'x:1' is not an event. Write RANK:EVENT_ID"),
        ("what_if", {"remove": ["event=0:" + "9" * 40]}, "is not an event. Write RANK:EVENT_ID"),
        ("what_if", {"remove": ["event=0:²"]}, "'0:²' is not an event."),
        ("what_if", {"remove": ["line=train.py:" + "9" * 40]}, "is not a source line. Write FILE:LINE"),
        ("what_if", {"remove": ["sync"] * 2000}, "2000 changes are too many for one prediction. Give at most 20."),
        ("event", {"event_id": "0:" + "9" * 40}, "is not an event. Write RANK:EVENT_ID, such as 0:1234."),
        ("schema", {"name": "nothing"}, "There is no table or view 'nothing'. Leave the name out for the list."),
        ("sql", {"text": None}, "text should be a valid string, not None."),
        ("sql", {"text": "SELECT 1; SELECT 2"}, "Only one statement at a time."),
        ("sql", {"text": "DROP TABLE events"}, f"DROP {READS_ONLY}"),
        ("sql", {"text": "INSERT INTO events SELECT * FROM events"}, f"INSERT {READS_ONLY}"),
        ("sql", {"text": "ATTACH '/tmp/x.db'"}, f"ATTACH {READS_ONLY}"),
        ("sql", {"text": "COPY events TO '/tmp/x.csv'"}, f"COPY {READS_ONLY}"),
        ("sql", {"text": "SET memory_limit='100GB'"}, f"SET {READS_ONLY}"),
        ("sql", {"text": "SELECT * FROM read_csv('/etc/passwd')"}, "The table function read_csv is not allowed"),
        ("sql", {"text": "SELECT * FROM '/etc/passwd'"}, "There is no table or view /etc/passwd."),
        ("sql", {"text": "SELECT " + ", ".join(map(str, range(300)))}, "The statement gives 300 columns. Ask for at most 200"),
        ("sql", {"text": LONG}, "The statement is longer than 100000 characters."),
        ("sql", {"text": "SELECT error('" + "e" * 5000 + "')"}, "eeee"),
        ("nothing", {}, "There is no tool 'nothing'. Tools: bottlenecks, breakdown, compare,"),
    ],
)  # fmt: skip
async def test_a_wrong_call_says_what_to_do(
    directory: str, tool: str, arguments: dict[str, Any], said: str
) -> None:
    given = {key: directory if value == "DIRECTORY" else value for key, value in arguments.items()}
    assert said in await refused(directory, tool, given)


@pytest.mark.parametrize(
    ("tool", "name"),
    [
        ("bottlenecks", "run"), ("bottlenecks", "cursor"), ("finding", "finding_id"), ("source", "file"),
        ("event", "event_id"), ("schema", "name"), (LONG, "run"), ("summary", LONG),
    ],
)  # fmt: skip
async def test_very_long_texts_are_not_said_back(directory: str, tool: str, name: str) -> None:
    assert "xxx" in await refused(directory, tool, {name: LONG})


@pytest.mark.parametrize("path", ["", "/etc/passwd", "a\0b", "../..", "/nowhere"])
async def test_only_the_runs_of_the_server_are_read(directory: str, path: str) -> None:
    assert "This server does not serve" in await refused(directory, "summary", {"run": path})


@pytest.mark.parametrize("path", ["", "/etc/passwd", "a\0b", "/nowhere", LONG])
async def test_a_server_of_any_run_says_what_is_none(path: str) -> None:
    with pytest.raises(ToolError) as caught:
        await build_server([]).call_tool("summary", {"run": path})
    assert len(str(caught.value)) <= LONGEST


async def test_a_query_that_never_ends_is_stopped(directory: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Run, "sql", partialmethod(Run.sql, timeout_s=0.3))
    text = "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) SELECT count(*) FROM t"
    assert "The query was stopped after 0.3 s. Narrow it down" in await refused(
        directory, "sql", {"text": text}
    )


async def test_long_column_names_are_cut(directory: str) -> None:
    answer = await build_server([directory]).call_tool("sql", {"text": f'SELECT 1 AS "{"c" * 50_000}"'})
    assert len(answer.content[0].text) < 1000


async def test_prompts_and_resources_say_what_there_is(directory: str) -> None:
    server = build_server([directory])
    with pytest.raises(
        MCPError, match=r"There is no prompt 'no'. Prompts: compare_two_runs, find_the_bottleneck"
    ):
        await server.get_prompt("no")
    with pytest.raises(MCPError, match="The prompt compare_two_runs needs 'before'"):
        await server.get_prompt("compare_two_runs", {})
    with pytest.raises(MCPError, match="There is no table or view 'no'"):
        await server.read_resource("neuron-explorer://schema/no")
    with pytest.raises(
        MCPError, match=r"There is no resource 'neuron-explorer://no'\. Resources: neuron-explorer://schema,"
    ):
        await server.read_resource("neuron-explorer://no")
    long = await server.get_prompt("find_the_bottleneck", {"run": LONG})
    assert len(long.messages[0].content.text) < 2000


def test_what_to_do_stays_of_a_long_text() -> None:
    text = shortened(f"'{LONG}' is no run. Give its directory.")
    assert text.startswith("'xxx")
    assert text.endswith("xxx' is no run. Give its directory.")
    assert len(text) == LONGEST
    assert shortened("a\n b") == "a b"


async def test_the_server_goes_on_after_wrong_calls(directory: str) -> None:
    server = StdioServerParameters(command=sys.executable, args=["-m", "explorer.cli.main", "mcp", directory])
    async with Client(stdio_client(server)) as session:
        for tool, arguments in (
            ("bottlenecks", {"limit": -1}),
            ("nothing", {}),
            ("sql", {"text": LONG}),
            ("what_if", {"remove": ["event=x:1"]}),
        ):
            answer = await session.call_tool(tool, arguments)
            assert answer.is_error
            assert len(answer.content[0].text) <= LONGEST
        right = await session.call_tool("bottlenecks", {})
        assert json.loads(right.content[0].text)["schema"] == "neuron-explorer/findings-brief/1"
