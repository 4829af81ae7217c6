"""The query API for agents: every answer a small JSON document with a published schema, pages and a token budget.

from explorer import agent, open_run
run = open_run("runs/baseline")
print(agent.bottlenecks(run).to_json(max_tokens=1500))
"""

from explorer.agent.api import (
    ANSWERS,
    bottlenecks,
    breakdown,
    collectives,
    compare,
    critical_path,
    event,
    finding,
    gaps,
    health,
    kernels,
    lines,
    memory,
    modules,
    neighbours,
    ops,
    schema,
    source,
    sql,
    steps,
    summary,
    what_if,
)
from explorer.agent.document import Document

__all__ = [
    "ANSWERS",
    "Document",
    "bottlenecks",
    "breakdown",
    "collectives",
    "compare",
    "critical_path",
    "event",
    "finding",
    "gaps",
    "health",
    "kernels",
    "lines",
    "memory",
    "modules",
    "neighbours",
    "ops",
    "schema",
    "source",
    "sql",
    "steps",
    "summary",
    "what_if",
]
