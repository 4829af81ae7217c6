"""The whole job in one answer: ranks, stragglers, groups, clocks, gain."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from explorer.analysis.ranks.desync import Desync, desynchronised
from explorer.analysis.ranks.device_mesh import Dimension, dimensions
from explorer.analysis.ranks.job_what_if import JobPrediction, predictions
from explorer.analysis.ranks.pipeline_schedule import Pipeline, pipelines
from explorer.analysis.ranks.stragglers import Straggler, stragglers

if TYPE_CHECKING:
    from explorer.analysis.run import Run

SCHEMA = "neuron-explorer/ranks/1"

_RANKS = """
SELECT w.rank, c.host, count(*) AS steps, median(w.wall_ns)::BIGINT AS step_ns, round(avg(w.own_ns))::BIGINT AS own_ns,
       round(avg(w.wait_ns))::BIGINT AS wait_ns, round(avg(w.transfer_ns))::BIGINT AS transfer_ns,
       round(avg(w.compute_ns))::BIGINT AS compute_ns, round(avg(w.data_ns))::BIGINT AS data_ns,
       round(avg(w.python_ns))::BIGINT AS python_ns, sum(w.last_calls)::BIGINT AS last_calls, sum(w.calls)::BIGINT AS calls
FROM rank_waits AS w LEFT JOIN rank_clocks AS c USING (rank)
WHERE w.complete AND NOT w.disturbed GROUP BY w.rank, c.host ORDER BY w.rank
"""

_GROUPS = """
SELECT group_name, any_value(group_description) AS group_description, max(group_size) AS group_size,
       list_distinct(flatten(list(ranks)))  AS ranks, sum(calls)::BIGINT AS calls
FROM (SELECT group_name, group_description, group_size, list(DISTINCT rank) AS ranks, count(*) AS calls
      FROM rank_collectives WHERE group_name <> '' GROUP BY ALL)
GROUP BY group_name ORDER BY group_name
"""

_MISSING = """
SELECT match_id, any_value(group_name) AS group_name, any_value(operation) AS operation, any_value(step) AS step,
       max(group_size) AS group_size, any_value(ranks_seen) AS ranks_seen, list_sort(list(rank)) AS ranks
FROM collectives_matched WHERE confidence = 'sequence' AND ranks_seen < group_size
GROUP BY match_id ORDER BY match_id LIMIT 20
"""


_PATH = """
SELECT rank, kind, sum(duration_ns)::BIGINT AS duration_ns, sum(duration_ns) / sum(sum(duration_ns)) OVER () AS share
FROM job_path GROUP BY rank, kind ORDER BY duration_ns DESC, rank, kind
"""


@dataclass(frozen=True)
class JobReport:
    """`ranks`: one row a rank (mean ns per complete step); `missing`: calls that not all ranks of their group recorded;
    `path`: the job's critical path by rank and kind; `mesh`: the dimensions that process groups form; `gains`: what-if over the job."""

    run: str
    ranks: list[dict[str, Any]]
    stragglers: list[Straggler]
    groups: list[dict[str, Any]]
    bandwidth: list[dict[str, Any]]
    clocks: list[dict[str, Any]]
    missing: list[dict[str, Any]]
    path: list[dict[str, Any]]
    mesh: list[Dimension]
    pipelines: list[Pipeline]
    desync: list[Desync]
    gains: list[JobPrediction]

    def to_dict(self) -> dict[str, Any]:
        """The JSON document of `ranks --json`."""
        return {
            "schema": SCHEMA,
            "run": self.run,
            "ranks": self.ranks,
            "stragglers": [item.to_dict() for item in self.stragglers],
            "groups": self.groups,
            "bandwidth": self.bandwidth,
            "clocks": self.clocks,
            "missing": self.missing,
            "path": self.path,
            "mesh": [one.to_dict() for one in self.mesh],
            "desync": [one.to_dict() for one in self.desync],
            "pipelines": [one.to_dict() for one in self.pipelines],
            "gains": [{**asdict(gain), "saving_ns": gain.saving_ns} for gain in self.gains],
        }

    def to_json(self, indent: int | None = None) -> str:
        """`to_dict()` as JSON text."""
        return json.dumps(self.to_dict(), ensure_ascii=False, indent=indent, default=str)


def job_report(run: Run) -> JobReport:
    """Everything about the job's ranks. A run of one rank has its row and no stragglers."""
    engine = run.engine
    groups = engine.sql(_GROUPS).rows()
    for group in groups:
        group["ranks"] = sorted(group["ranks"] or [])
    return JobReport(
        run=run.directory,
        ranks=engine.sql(_RANKS).rows(),
        stragglers=stragglers(engine),
        groups=groups,
        bandwidth=engine.sql("SELECT * FROM group_bandwidth").rows(),
        clocks=engine.sql("SELECT * FROM rank_clocks ORDER BY rank").rows(),
        missing=engine.sql(_MISSING).rows(),
        path=engine.sql(_PATH).rows(),
        mesh=dimensions(engine),
        pipelines=pipelines(engine),
        desync=desynchronised(engine),
        gains=predictions(engine),
    )
