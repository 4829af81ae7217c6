"""How close each source line's computation comes to what the device could do: achieved rate and roofline efficiency."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from explorer.analysis.run import Run

_RATES = """
SELECT file, line, CASE WHEN line > 0 THEN 0 ELSE site_id END AS only_site,
       sum(flops)::DOUBLE AS work_flops, sum(time_ns)::BIGINT AS work_ns,
       CASE WHEN count(efficiency) = count(*) THEN sum(efficiency * time_ns) END AS least_ns
FROM roofline_lines WHERE file IS NOT NULL AND time_ns > 0 GROUP BY ALL
"""


def with_efficiency(run: Run, rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Rows of `lines_by_place` with what their computation achieved.

    Adds `work_flops` and `work_ns` (operations and time of the op calls whose work is known), `least_ns` (the least time
    that the roofline allows them; None where a peak is not known) and their quotients, see `rates`.
    """
    known = {
        (row.pop("file"), row.pop("line"), row.pop("only_site")): row for row in run.engine.sql(_RATES).rows()
    }
    nothing: dict[str, Any] = {"work_flops": None, "work_ns": None, "least_ns": None}
    return [
        rates(
            {
                **row,
                **known.get((row["file"], row["line"], 0 if row["line"] else row["site_id"]), nothing),
            }
        )
        for row in rows
    ]


def rates(row: dict[str, Any]) -> dict[str, Any]:
    """The row with `achieved_flops` (operations per second) and `efficiency` (least time over time, 0 to 1)."""
    work_ns, least_ns = row.get("work_ns"), row.get("least_ns")
    row["achieved_flops"] = row["work_flops"] * 1e9 / work_ns if work_ns else None
    row["efficiency"] = least_ns / work_ns if work_ns and least_ns is not None else None
    return row
