"""The documentation that an MCP server carries along: how to use it, and what the rules look for."""

from __future__ import annotations

import inspect

from explorer.agent.json_schema import DOCUMENTS
from explorer.agent.prompts import INSTRUCTIONS
from explorer.analysis.findings import all_rules
from explorer.analysis.rule import Rule


def guide_text() -> str:
    """As plain text: conventions, documents, and each rule with what it looks for, needs and can be told."""
    parts = [
        INSTRUCTIONS,
        "Answers are pages: pass `next_cursor` as `cursor` for the next one. `max_tokens` leaves off rows that do not fit.",
        "Documents with a JSON Schema (neuron-explorer schema --document NAME): "
        + ", ".join(DOCUMENTS)
        + ".",
        "Rules:",
    ]
    return "\n\n".join(parts) + "\n\n" + "\n".join(_rule(rule) for rule in all_rules())


def _rule(rule: Rule) -> str:
    module = inspect.getmodule(rule.check)
    looks_for = " ".join((inspect.getdoc(module) or rule.title).split("\n\n")[0].split())
    settings = "".join(f"\n    {s.name} = {s.default:g}: {s.doc}" for s in rule.settings)
    return f"- {rule.name}: {looks_for} Needs {', '.join(rule.needs)}.{settings}"
