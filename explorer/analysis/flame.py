"""The flame graph of user code: time by call chain, from host_states (or from ops where a run has none)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from explorer.analysis.run import Run


@dataclass
class FlameNode:
    """A frame at one place in the call tree. `total_ns` includes the frames it calls, `self_ns` does not."""

    label: str
    file: str
    line: int
    code: str
    total_ns: int = 0
    self_ns: int = 0
    children: dict[int, FlameNode] = field(default_factory=dict)

    def ordered(self) -> list[FlameNode]:
        """Children by time, longest first."""
        return sorted(self.children.values(), key=lambda node: (-node.total_ns, node.label))

    def depth(self) -> int:
        """Levels below this one."""
        return 1 + max((child.depth() for child in self.children.values()), default=-1)


@dataclass(frozen=True)
class FlameCell:
    """A frame as drawn: its place as shares of the width, and its depth."""

    node: FlameNode
    path: tuple[FlameNode, ...]
    left: float
    right: float
    depth: int


def flame_tree(run: Run, rank: int | None = None) -> FlameNode:
    """The tree of all chains (of one rank, or of all). The root holds the whole time."""
    engine = run.engine
    condition, parameters = ("WHERE rank = ?", [rank]) if rank is not None else ("", [])
    times = engine.sql(
        f"SELECT stack_id, sum(duration_ns)::BIGINT AS duration_ns FROM stack_times {condition} GROUP BY stack_id",
        parameters,
    ).rows()
    frames: dict[int, list[int]] = {}
    for row in engine.sql("SELECT stack_id, site_id FROM stacks ORDER BY stack_id, depth DESC").rows():
        frames.setdefault(row["stack_id"], []).append(row["site_id"])
    sites = {row["site_id"]: row for row in engine.sql("SELECT * FROM sites").rows()}
    root = FlameNode("all user code", "", 0, "")
    for row in times:
        root.total_ns += row["duration_ns"]
        node = root
        for site_id in frames.get(row["stack_id"], ()):
            site = sites.get(site_id)
            if site is None:
                continue
            child = node.children.get(site_id)
            if child is None:
                child = FlameNode(
                    f"{site['function']} ({site['file'].rsplit('/', 1)[-1]}:{site['line']})",
                    site["file"],
                    site["line"],
                    site["code"] or "",
                )
                node.children[site_id] = child
            child.total_ns += row["duration_ns"]
            node = child
        node.self_ns += row["duration_ns"]
    return root


def flame_cells(root: FlameNode, smallest: float) -> Iterator[FlameCell]:
    """Every frame at least `smallest` of the width wide, root first, laid out from left to right by time."""
    total = root.total_ns or 1

    def walk(node: FlameNode, path: tuple[FlameNode, ...], left: float, depth: int) -> Iterator[FlameCell]:
        right = left + node.total_ns / total
        yield FlameCell(node, path, left, right, depth)
        at = left
        for child in node.ordered():
            if child.total_ns / total >= smallest:
                yield from walk(child, (*path, child), at, depth + 1)
            at += child.total_ns / total

    yield from walk(root, (root,), 0.0, 0)
