"""The blind trial of the agent tools: can an agent with nothing else name each planted fault and its line?

    python -m benchmarks.planted.trial prepare            programs and runs in --runs, the answers in --key
    python -m benchmarks.planted.trial tools 3            the tools that the MCP server of run 3 offers
    python -m benchmarks.planted.trial ask 3 bottlenecks '{"limit": 2}'
    python -m benchmarks.planted.trial kinds              the kinds of fault to choose from
    python -m benchmarks.planted.trial transcript 3       the session of run 3, long answers cut
    python -m benchmarks.planted.trial score ANSWERS      {"3": {"kind": "row_loop", "file": "train.py", "line": 7}, ...}

Each program is drawn at random and holds its slow version alone, without comments. Every question and answer goes to
RUNS/N/session.jsonl, from which `score` counts calls and tokens (four characters each).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.planted.cases import Case, planted_cases
from benchmarks.planted.slow_only import SlowProgram, slow_only

COUNT, STEPS, SEED = 10, 12, 20261130
CHARACTERS_PER_TOKEN = 4
SHOWN_CHARACTERS = 700


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="benchmarks.planted.trial", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("what", choices=("prepare", "tools", "ask", "kinds", "transcript", "score"))
    parser.add_argument("arguments", nargs="*")
    parser.add_argument("--runs", default="/tmp/trial", type=Path)
    parser.add_argument("--key", default="/tmp/trial-key.json", type=Path)
    parser.add_argument("--seed", default=SEED, type=int)
    given = parser.parse_args()
    if given.what == "prepare":
        prepare(given.runs, given.key, given.seed)
    elif given.what == "kinds":
        print(_kinds())
    elif given.what == "transcript":
        print(transcript(given.runs / str(int(given.arguments[0]))))
    elif given.what == "score":
        print(score(json.loads(Path(given.arguments[0]).read_text()), given.key, given.runs))
    else:
        number, *rest = given.arguments
        print(asyncio.run(_session(given.runs / str(int(number)), given.what, rest)))
    return 0


def prepare(runs: Path, key: Path, seed: int) -> None:
    """Draw the programs, write and record each in a directory of its own, and keep the answers apart."""
    drawn = random.Random(seed).sample(planted_cases(), COUNT)
    answers = {}
    for number, case in enumerate(drawn, 1):
        directory = runs / str(number)
        directory.mkdir(parents=True, exist_ok=False)
        program = slow_only(Path(case.file).read_text(encoding="utf-8"), case.lines, steps=STEPS)
        (directory / "train.py").write_text(program.text, encoding="utf-8")
        subprocess.run(
            [sys.executable, "-W", "ignore", "train.py"],
            cwd=directory,
            check=True,
            env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.getcwd()},
        )
        answers[str(number)] = _answer(case, program)
        print(f"{number}: recorded {directory / 'run'}")
    key.write_text(json.dumps(answers, indent=1), encoding="utf-8")


def _answer(case: Case, program: SlowProgram) -> dict[str, Any]:
    return {
        "program": case.name,
        "kinds": list(case.kinds),
        "file": "train.py",
        "lines": list(program.lines),
        "repaired": list(program.repaired),
    }


def _kinds() -> str:
    from explorer.analysis.findings import all_rules

    return "\n".join(
        f"{rule.name}: {rule.title}" for rule in all_rules() if not rule.name.startswith("neuron_")
    )


async def _session(directory: Path, what: str, arguments: list[str]) -> str:
    from mcp import Client, StdioServerParameters
    from mcp.client.stdio import stdio_client

    server = StdioServerParameters(
        command=sys.executable, args=["-m", "explorer.cli.main", "mcp", str(directory / "run")]
    )
    async with Client(stdio_client(server)) as session:
        if what == "tools":
            tools = (await session.list_tools()).tools
            return "\n\n".join(
                f"{tool.name}: {tool.description}\n  arguments: {json.dumps(tool.input_schema.get('properties', {}))}"
                for tool in tools
            )
        name, given = arguments[0], json.loads(arguments[1]) if len(arguments) > 1 else {}
        answer = str(getattr((await session.call_tool(name, given)).content[0], "text", ""))
    with open(directory / "session.jsonl", "a", encoding="utf-8") as log:
        log.write(json.dumps({"tool": name, "arguments": given, "answer": answer}) + "\n")
    return answer


def score(answers: dict[str, dict[str, Any]], key: Path, runs: Path) -> str:
    """Which faults and lines were named, and at what cost."""
    rows, faults, marked, changed = [], 0, 0, 0
    expected = json.loads(key.read_text(encoding="utf-8"))
    for number, right in expected.items():
        answer = answers.get(number, {})
        fault = answer.get("kind") in right["kinds"]
        line = answer.get("line") if os.path.basename(str(answer.get("file"))) == right["file"] else None
        at_mark, at_change = line in right["lines"], line in (*right["lines"], *right["repaired"])
        faults, marked, changed = faults + fault, marked + at_mark, changed + at_change
        calls = _calls(runs / number / "session.jsonl")
        tokens = sum(len(call["answer"]) for call in calls) // CHARACTERS_PER_TOKEN
        rows.append(
            f"{number:>2} {right['program']:26} fault {'yes' if fault else 'NO':4} line {'yes' if at_mark else 'to change' if at_change else 'NO':9}"
            f" {len(calls)} calls, {tokens} tokens: {answer.get('kind')} at line {answer.get('line')}"
            f" (planted: {', '.join(right['kinds'])} at {right['lines']}, the repair changes {right['repaired']})"
        )
    return "\n".join(
        [
            *rows,
            f"fault {faults} of {len(expected)}, marked line {marked}, marked line or one that the repair changes {changed}",
        ]
    )


def transcript(directory: Path) -> str:
    """Every question of a session with the beginning of its answer."""
    calls = _calls(directory / "session.jsonl")
    return "\n".join(
        f"{call['tool']} {json.dumps(call['arguments'])}\n    {call['answer'][:SHOWN_CHARACTERS]}"
        + (" ..." if len(call["answer"]) > SHOWN_CHARACTERS else "")
        for call in calls
    )


def _calls(log: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()] if log.exists() else []


if __name__ == "__main__":
    sys.exit(main())
