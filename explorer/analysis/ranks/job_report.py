"""The whole job in one answer: ranks, stragglers, groups, clocks, gain."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from explorer.analysis.absent_ranks import absent_ranks, absent_text
from explorer.analysis.ranks.desync import Desync, desynchronised
from explorer.analysis.ranks.device_mesh import Dimension, dimensions
from explorer.analysis.ranks.job_what_if import JobPrediction, predictions
from explorer.analysis.ranks.pipeline_schedule import Pipeline, pipelines
from explorer.analysis.ranks.query import query
from explorer.analysis.ranks.stragglers import Straggler, stragglers

if TYPE_CHECKING:
    from explorer.analysis.run import Run

SCHEMA = "neuron-explorer/ranks/1"

MOST_LINKS = 1000
"""Pairs of ranks listed; beyond, the slowest say enough."""


@dataclass(frozen=True)
class JobReport:
    """`ranks`: one row a rank (mean ns per complete step); `missing`: calls that not all ranks of their group recorded;
    `absent`: ranks of the job without a manifest here, as gaps with first_rank and last_rank, and `absent_text` the same as a sentence;
    `links`: messages between two ranks, the slowest pair first; `path`: the job's critical path by rank and kind; `mesh`: the dimensions that process groups form; `gains`: what-if over the job."""

    run: str
    ranks: list[dict[str, Any]]
    absent: list[dict[str, int]]
    absent_text: str
    stragglers: list[Straggler]
    groups: list[dict[str, Any]]
    bandwidth: list[dict[str, Any]]
    links: list[dict[str, Any]]
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
            "absent": self.absent,
            "stragglers": [item.to_dict() for item in self.stragglers],
            "groups": self.groups,
            "bandwidth": self.bandwidth,
            "links": self.links,
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
    return JobReport(
        run=run.directory,
        ranks=engine.sql(query("job_ranks")).rows(),
        absent=[{"first_rank": first, "last_rank": last} for first, last in absent_ranks(run.reader)],
        absent_text=absent_text(run.reader),
        stragglers=stragglers(engine),
        groups=engine.sql(query("job_groups")).rows(),
        bandwidth=engine.sql("SELECT * FROM group_bandwidth").rows(),
        links=engine.sql(query("pair_links"), {"most": MOST_LINKS}).rows(),
        clocks=engine.sql("SELECT * FROM rank_clocks ORDER BY rank").rows(),
        missing=engine.sql(query("missing_calls")).rows(),
        path=engine.sql(query("path_shares")).rows(),
        mesh=dimensions(engine),
        pipelines=pipelines(engine),
        desync=desynchronised(engine),
        gains=predictions(engine),
    )
