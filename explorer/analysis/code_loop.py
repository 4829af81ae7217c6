"""Python loops in the user's code, found from the lines a thread visited and their source text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from explorer.analysis.paused_lines import paused_after
from explorer.analysis.profiling_cost import MOST, traced_ns
from explorer.analysis.rule_context import RuleContext

_HEADER = re.compile(r"^(?:async\s+)?for\s+(?P<targets>.+?)\s+in\s+(?P<source>.+?):?\s*(?:#.*)?$")
_COMPREHENSION = re.compile(
    r"\bfor\s+(?P<targets>[\w\s,()*]+?)\s+in\s+(?P<source>.+?)(?=[\])}]|\bif\b|\bfor\b|$)"
)
_WHILE = re.compile(r"^while\s+(?P<condition>.+?):")
_NAME = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True)
class Line:
    """A user line with its visits and recorded time per step on one thread."""

    site_id: int
    file: str
    line: int
    function: str
    code: str
    visits: float
    host_ns: float
    op_ns: float
    python_ns: float
    top_ops: float
    ops: float
    quiet_python_ns: float
    """Lower quartile over the steps: interruptions only add time"""
    own_ns: float
    """Mean Python time without what recording the line cost and without the library modules it calls, and with what ran on
    while recording paused in it"""


@dataclass(frozen=True)
class CodeLoop:
    """A loop: its header, the lines of its body in the same function, its variables and what it runs over."""

    header: Line
    body: tuple[Line, ...]
    targets: tuple[str, ...]
    source: str
    passes: float

    @property
    def lines(self) -> tuple[Line, ...]:
        """Header and body, each line once."""
        return (self.header, *(line for line in self.body if line.site_id != self.header.site_id))

    @property
    def is_comprehension(self) -> bool:
        """Whether body and header are one line: nothing counts its passes on every Python."""
        return self.header in self.body

    def indexes(self, code: str) -> bool:
        """Whether code subscripts something with a loop variable: `x[i]`, `x[:, i : i + 1]`."""
        return any(re.search(rf"\[[^\[\]]*\b{re.escape(name)}\b[^\[\]]*\]", code) for name in self.targets)


@dataclass(frozen=True)
class CodeLines:
    """All user lines of the scope on the main thread, per step."""

    context: RuleContext

    @property
    def lines(self) -> tuple[Line, ...]:
        """Of one context all rules read the same lines: they are asked for once."""
        shared = self.context.shared
        if "code_lines" not in shared:
            shared["code_lines"] = self._read()
        known: tuple[Line, ...] = shared["code_lines"]
        return known

    def _read(self) -> tuple[Line, ...]:
        n = self.context.count
        # A line of most steps is spoken of by its median step, so that an interruption of one step does not show;
        # a line of few steps by its mean.
        times = ", ".join(
            f"(CASE WHEN 2 * count(*) > {n} THEN median({name}) ELSE sum({name}) / {n} END)::DOUBLE AS {name}"
            for name in ("visits", "host_ns", "op_ns", "python_ns", "top_ops", "ops")
        )
        times += f""", (CASE WHEN 2 * count(*) > {n} THEN quantile_cont(python_ns, 0.25) ELSE sum(python_ns) / {n} END)::DOUBLE
          AS quiet_python_ns, (sum(own_ns) / {n})::DOUBLE AS own_ns"""
        rows = self.context.rows(
            f"""SELECT site_id, s.file, s.line, s.function, coalesce(s.code, '') AS code, {times}
            FROM ({self._steps}) l JOIN sites s USING (site_id)
            WHERE s.is_user GROUP BY ALL ORDER BY s.file, s.line, site_id"""
        )
        return tuple(Line(**{name: _number(value) for name, value in row.items()}) for row in rows)

    def quiet(self, lines: Sequence[Line]) -> tuple[float, float]:
        """Of these lines together, the lower quartile over the steps of Python time without the cost of recording, and of
        their own. Together, since which of several lines a pause of recording falls to is chance."""
        n = self.context.count
        row = self.context.row(
            "SELECT "
            + ", ".join(
                f"coalesce(CASE WHEN 2 * count(*) > {n} THEN quantile_cont({name}, 0.25) ELSE sum({name}) / {n} END, 0)::DOUBLE AS {name}"
                for name in ("net_ns", "own_ns")
            )
            + f""" FROM (SELECT sum(net_ns) AS net_ns, sum(own_ns) AS own_ns FROM ({self._steps})
            WHERE {self.context.in_sites("site_id", [line.site_id for line in lines])} GROUP BY step)"""
        )
        return row["net_ns"], row["own_ns"]

    @property
    def _steps(self) -> str:
        """SQL for line_steps of the main thread with the Python time that recording did not add (net_ns), and of it what no
        library module took (own_ns). Both have the time of pauses at the line that was hot, not at its caller."""
        context = self.context
        rank, track = context.scope.rank, context.main_track
        return context.engine.keep(
            f"""SELECT l.*, greatest(l.python_ns - coalesce(r.recording_ns, 0), {1 - MOST} * l.python_ns) AS free_ns,
  free_ns + coalesce(p.paused_ns, 0) AS net_ns,
  free_ns * (1 - least(1.0, coalesce(r.module_ns, 0) / greatest(1, l.python_ns))) + coalesce(p.paused_ns, 0) AS own_ns
FROM line_steps l LEFT JOIN (
  SELECT s.step, h.site_id, sum({traced_ns(context.engine, rank)}) AS recording_ns, sum(h.module_python_ns) AS module_ns
  FROM host_states h ASOF LEFT JOIN (SELECT * FROM steps s WHERE {context.where("s")}) s ON h.start_ns >= s.start_ns
  WHERE h.rank = {rank} AND h.track_id = {track} GROUP BY ALL) r
ON r.site_id = l.site_id AND r.step IS NOT DISTINCT FROM l.step
LEFT JOIN (
  SELECT step, site_id, sum(duration_ns) AS paused_ns FROM (
    SELECT step, unnest([site_id, caller_site_id]) AS site_id, unnest([duration_ns, -duration_ns]) AS duration_ns
    FROM ({paused_after(context)})) GROUP BY ALL) p
ON p.site_id = l.site_id AND p.step = l.step
WHERE {context.where("l")} AND l.track_id = {track}"""
        )

    def loops(self, passes: float) -> list[CodeLoop]:
        """Loops whose body runs at least `passes` times per step."""
        found = []
        by_function: dict[tuple[str, str], list[Line]] = {}
        for line in self.lines:
            by_function.setdefault((line.file, line.function), []).append(line)
        at_place: dict[tuple[str, int], list[Line]] = {}
        for line in self.lines:
            at_place.setdefault((line.file, line.line), []).append(line)
        for members in by_function.values():
            for header in members:
                found += self._loop(header, members, at_place[header.file, header.line], passes)
        return found

    def _loop(
        self, header: Line, members: Sequence[Line], same_place: Sequence[Line], passes: float
    ) -> list[CodeLoop]:
        if (match := _HEADER.match(header.code)) or (match := _WHILE.match(header.code)):
            after = [line for line in members if line.line > header.line]
        elif match := _COMPREHENSION.search(header.code):
            # The body is the same line; its passes show as ops or as visits of the comprehension's own frame.
            count = max(header.visits, header.top_ops)
            if count < passes:
                return []
            targets = tuple(_NAME.findall(match["targets"]))
            # What the line does with the results (torch.stack, sum) goes with it. From Python 3.12 on the line and its
            # comprehension are one code object anyway.
            body = (header, *(line for line in same_place if line.site_id != header.site_id))
            return [CodeLoop(header, body, targets, _iterable(header.code[match.start("source") :]), count)]
        else:
            return []
        # Only lines that run in most passes belong to the body; a nested loop's lines run more often.
        body = tuple(line for line in after if line.visits >= max(passes, 0.5 * header.visits))
        if header.visits < passes or not body:
            return []
        groups = match.groupdict()
        targets = tuple(_NAME.findall(groups.get("targets") or groups.get("condition") or ""))
        return [CodeLoop(header, body, targets, (groups.get("source") or "").strip(), header.visits)]


def _iterable(code: str) -> str:
    """What a comprehension runs over: the text up to the bracket that closes it, or to its next `if` or `for`."""
    depth = 0
    for place, character in enumerate(code):
        depth += (character in "([{") - (character in ")]}")
        if depth < 0 or (depth == 0 and re.match(r"\s(if|for|async)\b", code[place:])):
            return code[:place].strip()
    return code.strip()


def _number(value: Any) -> Any:
    return value if isinstance(value, str | int) else float(value)
