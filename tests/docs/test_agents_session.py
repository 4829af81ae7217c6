"""The session that docs/agents.md shows: its numbers are those that the product answers today."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from explorer import agent, open_run

ROOT = Path(__file__).resolve().parents[2]
NUMBER = re.compile(r'"(\w+)": (-?\d+(?:\.\d+)?)')


def numbers(value: Any) -> set[tuple[str, float]]:
    """Every number of a document with its key."""
    found: set[tuple[str, float]] = set()
    if isinstance(value, dict):
        for key, item in value.items():
            if isinstance(item, int | float) and not isinstance(item, bool):
                found.add((key, float(item)))
            else:
                found |= numbers(item)
    elif isinstance(value, list):
        for item in value:
            found |= numbers(item)
    return found


def test_the_numbers_of_the_session_are_todays() -> None:
    page = (ROOT / "docs" / "agents.md").read_text()
    session = page[page.index("## A session") : page.index("## Tried blind")]
    shown = {(key, float(value)) for key, value in NUMBER.findall(session)} - {
        ("limit", 1.0),
        ("around", 61.0),
    }
    with open_run(ROOT / "sample_traces" / "transformer") as run:
        answers = [
            agent.bottlenecks(run, limit=1).to_json(),
            agent.source(run, file="train_transformer.py", around=61).to_json(max_tokens=20_000),
            agent.what_if(run, remove=["line=train_transformer.py:61"]).to_json(),
        ]
    answered = set().union(*(numbers(json.loads(answer)) for answer in answers))
    assert len(shown) >= 20
    assert shown - answered == set()
