"""The end of the report: environment, health, and how the numbers were made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import explorer
from explorer.analysis.phrase import value_text
from explorer.report.html.markup import Markup, join, section, tag
from explorer.store.manifest import Manifest

METHODS = (
    "All times are as recorded, the profiler's own cost included; findings are corrected for it where the run holds its measured cost.",
    "A step's parts are unions of intervals: overlaps count once, compute before communication before copies.",
    "A line's host time is its Python time and the ops it is responsible for; ops of the backward pass are charged to the line of their forward op.",
    "Savings come from replaying the run's dependency graph without the time in question, or are bounds, and say which.",
    'Every number of a finding can be recomputed with the SQL shown with it: neuron-explorer query RUN "SQL".',
)


def health_section(rows: Sequence[Mapping[str, Any]]) -> Markup:
    """What is missing or doubtful, same kinds of several ranks together."""
    if not rows:
        return section("health", "Health", tag("p", "Nothing is missing or doubtful.", class_="empty"))
    groups: dict[tuple[str, str, str], list[Mapping[str, Any]]] = {}
    for row in rows:
        groups.setdefault((row["severity"], row["kind"], row["remedy"] or ""), []).append(row)
    items = [
        tag(
            "li",
            tag("span", severity, class_=f"severity {severity}"),
            f" {members[0]['message']}",
            f" (and on {len(members) - 1} more ranks)" if len(members) > 1 else "",
            tag("span", f" {remedy}", class_="meaning") if remedy else "",
        )
        for (severity, _, remedy), members in groups.items()
    ]
    return section("health", "Health", tag("ul", *items, class_="health"))


def environment_section(manifests: Sequence[Manifest]) -> Markup:
    """What the run was made on, from the manifests."""
    first = manifests[0]
    facts: dict[str, Any] = {
        "ranks": len(manifests),
        "made by": first.made_by,
        "command": " ".join(first.command),
    }
    facts |= {
        _name(key): value_text(key, value)
        for key, value in first.host.items()
        if isinstance(value, str | int | float | bool)
    }
    if first.git_commit:
        facts["git commit"] = first.git_commit
    if first.cost:
        facts |= {
            f"profiling cost: {_name(key)}": value_text(key, value)
            for key, value in first.cost.items()
            if isinstance(value, str | int | float)
        }
    for number, source in enumerate(first.inputs[:3]):
        facts[f"input {number + 1}"] = source.get("path", "")
    facts["neuron-explorer"] = explorer.__version__
    rows = [
        tag("tr", tag("th", key, scope="row"), tag("td", value))
        for key, value in facts.items()
        if value not in ("", None)
    ]
    return section("environment", "Environment", tag("table", *rows, class_="facts-table"))


def _name(key: str) -> str:
    """A name with a unit, as a heading: the value says the unit."""
    return key.removesuffix("_ns").removesuffix("_bytes").replace("_", " ")


def methods_section() -> Markup:
    """How to read the numbers."""
    return section("method", "Method", tag("ul", *(tag("li", line) for line in METHODS)))


def navigation(entries: Sequence[tuple[str, str]]) -> Markup:
    """Links to the parts, and the theme switch."""
    links = [tag("a", title, href=f"#{identity}") for identity, title in entries]
    return tag("nav", join(*links), tag("button", "light / dark", type="button", id="theme"))
