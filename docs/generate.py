"""Write the pages that are made from the code: docs/schema.md, docs/words.md and docs/rules/index.md.

python docs/generate.py           writes them
python docs/generate.py --check   exits with 1 where a page is out of date
"""

from __future__ import annotations

import sys
from pathlib import Path

from explorer.analysis.findings import all_rules
from explorer.cli.schema import described
from explorer.model.vocabulary import (
    ATTRIBUTIONS,
    CATEGORIES,
    DEVICE_WORK,
    EDGE_KINDS,
    PHASES,
    PRECISIONS,
    SEVERITIES,
    TRACK_KINDS,
)

DOCS = Path(__file__).resolve().parent


def schema_page() -> str:
    """Every table and view with its columns."""
    found = described()
    lines = [
        "# Tables and views",
        "",
        'Everything a run holds. `neuron-explorer query RUN "SELECT ..."` answers SQL (DuckDB) over these names, and so do the',
        "terminal UI, `run.sql()` and agents. Tables are stored; views are computed from them. Times are int64 nanoseconds.",
        "A `?` after a type: the column may be null. Made from the code by `make docs`.",
    ]
    for kind, title in (("table", "Tables"), ("view", "Views")):
        names = [name for name, entry in found.items() if entry["kind"] == kind]
        lines += [
            "",
            f"## {title}",
            "",
            " · ".join(f"[{name}](#{name.replace('.', '').lower()})" for name in names),
        ]
        for name in names:
            entry = found[name]
            doc = entry["doc"]
            lines += [
                "",
                f"### {name}",
                "",
                doc[0].upper() + doc[1:],
                "",
                "| column | type | meaning |",
                "|---|---|---|",
            ]
            for column in entry["columns"]:
                optional = "?" if column.get("nullable") else ""
                unit = f" {column['unit']}" if column["unit"] else ""
                lines.append(
                    f"| {column['name']} | {column['type']}{optional}{unit} | {_cell(column['doc'])} |"
                )
    return "\n".join(lines) + "\n"


def words_page() -> str:
    """Every closed set of words used in tables."""
    lines = ["# Words", "", "The closed sets of words that tables use. Made from the code by `make docs`."]
    for title, column, words in (
        ("Categories", "`events.category`: what kind of activity an event is.", CATEGORIES),
        ("Attribution", "`events.attribution`: how the line of an event is known.", ATTRIBUTIONS),
        ("Precision", "`events.precision`: how exactly it is known.", PRECISIONS),
    ):
        lines += ["", f"## {title}", "", column, "", "| word | meaning |", "|---|---|"]
        lines += [f"| {word} | {_cell(meaning)} |" for word, meaning in words.items()]
    for title, column, names in (
        ("Device work", "Categories that keep a device busy when they lie on a device track.", DEVICE_WORK),
        ("Phases", "`events.phase`.", PHASES),
        ("Edges", "`edges.kind`.", EDGE_KINDS),
        ("Tracks", "`tracks.kind`.", TRACK_KINDS),
        ("Severities", "`health.severity`.", SEVERITIES),
    ):
        lines += ["", f"## {title}", "", f"{column} {', '.join(names)}."]
    return "\n".join(lines) + "\n"


def rules_page() -> str:
    """Every rule with its page, in two tables: any device, and Neuron."""
    lines = [
        "# Rules",
        "",
        "The bottlenecks that `neuron-explorer bottlenecks` knows. [Findings](../findings.md) says how they become findings. Made from",
        "the code by `make docs`.",
    ]
    for title, neuron in (("On any device", False), ("On AWS Neuron", True)):
        rules = [rule for rule in all_rules() if rule.name.startswith("neuron_") is neuron]
        lines += ["", f"## {title}", "", "| rule | finds |", "|---|---|"]
        lines += [f"| [{rule.name}]({rule.name}.md) | {_cell(_first_words(rule.name))} |" for rule in rules]
    return "\n".join(lines) + "\n"


def _first_words(rule: str) -> str:
    """What a rule's page says it finds: its first paragraph."""
    return " ".join((DOCS / "rules" / f"{rule}.md").read_text().split("\n\n")[1].split())


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


PAGES = {"schema.md": schema_page, "words.md": words_page, "rules/index.md": rules_page}


def main() -> int:
    stale = []
    for name, page in PAGES.items():
        path, text = DOCS / name, page()
        if not path.exists() or path.read_text() != text:
            stale.append(name)
            if "--check" not in sys.argv:
                path.write_text(text)
    if "--check" in sys.argv and stale:
        print(f"out of date: {', '.join(stale)}; run make docs", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
