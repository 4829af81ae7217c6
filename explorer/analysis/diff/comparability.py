"""May two runs be compared? Device, software, ranks, shapes: each difference said, none of them silently ignored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from explorer.analysis.contention import contention
from explorer.analysis.step_scope import find_scope

if TYPE_CHECKING:
    from explorer.analysis.run import Run


@dataclass(frozen=True, slots=True)
class Difference:
    """`weight` is 'blocks' (the step times do not measure the same work) or 'note' (they may, look at it)."""

    what: str
    before: str
    after: str
    weight: str


def differences(before: Run, after: Run) -> list[Difference]:
    """Every known difference in what was measured."""
    found: list[Difference] = []

    def compare(what: str, a: Any, b: Any, weight: str) -> None:
        if a is not None and b is not None and a != b:
            found.append(Difference(what, str(a), str(b), weight))

    compare("device", _devices(before), _devices(after), "note")
    compare("ranks", len(before.ranks), len(after.ranks), "blocks")
    for name in ("torch", "python", "platform", "cpu_count"):
        compare(name, _host(before, name), _host(after, name), "note")
    compare("recorded by", _made_by(before), _made_by(after), "note")
    compare("other programs on the processor:", _others(before), _others(after), "note")
    shapes = _shape_change(before, after)
    if shapes:
        found.append(Difference("input shapes", *shapes, "blocks"))
    return found


def _devices(run: Run) -> str | None:
    names = (
        run.engine.sql("SELECT DISTINCT name FROM devices ORDER BY name").arrow().column("name").to_pylist()
    )
    return ", ".join(names) or None


def _host(run: Run, name: str) -> Any:
    for manifest in run.reader.manifests.values():
        if name in manifest.host:
            return manifest.host[name]
    return None


def _others(run: Run) -> str:
    """Whether other programs took the processor, which makes the steps of that run longer."""
    held_up = contention(run.engine, find_scope(run.engine))
    return f"yes; this one had {held_up.core_percent:.0f} % of a core" if held_up.sentence else "none known"


def _made_by(run: Run) -> str | None:
    kinds = {manifest.made_by for manifest in run.reader.manifests.values() if manifest.made_by}
    return ", ".join(sorted(kinds)) or None


_SHAPES = """
SELECT name, shapes, count(*) AS calls FROM events
WHERE category = 'op' AND shapes IS NOT NULL
  AND name IN ('aten::mm', 'aten::addmm', 'aten::bmm', 'aten::linear', 'aten::convolution', 'aten::embedding',
               'aten::scaled_dot_product_attention')
GROUP BY ALL
"""


def _shape_change(before: Run, after: Run) -> tuple[str, str] | None:
    """The heaviest operators' shapes where the two runs share none of them for an op that both ran."""
    a, b = (_by_op(run) for run in (before, after))
    for name in sorted(a.keys() & b.keys()):
        if not a[name].keys() & b[name].keys():
            return (
                f"{name} {max(a[name], key=a[name].__getitem__)}",
                f"{name} {max(b[name], key=b[name].__getitem__)}",
            )
    return None


def _by_op(run: Run) -> dict[str, dict[str, int]]:
    shapes: dict[str, dict[str, int]] = {}
    for row in run.engine.sql(_SHAPES).rows():
        shapes.setdefault(row["name"], {})[row["shapes"]] = row["calls"]
    return shapes
