"""Which rank and which device of it every profile belongs to."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from explorer.collectors.neuron.tables import ProfileTables

_RANK_IN_NAME = re.compile(r"(?:^|[_\-/.])rank[_\-]?(\d+)(?=$|[_\-/.])", re.IGNORECASE)
_CORE_IN_NAME = re.compile(r"(?:^|[_\-/.])(?:v?nc)[_\-]?(\d+)(?=$|[_\-/.])", re.IGNORECASE)


@dataclass
class DevicePlan:
    """A device profile and the number of its logical core within its rank."""

    tables: ProfileTables
    device_index: int


@dataclass
class RankPlan:
    """What one rank is made of: at most one process of a system profile, and its device profiles."""

    rank: int
    system: ProfileTables | None = None
    instance: str | None = None
    process: int | None = None
    devices: list[DevicePlan] = field(default_factory=list)
    how: str = "only"
    sharers: list[tuple[str | None, int | None]] = field(default_factory=list)
    """Instance and process of every rank that the system profile speaks of, where those are several: each keeps its own rows."""


def plan_ranks(profiles: list[ProfileTables]) -> list[RankPlan]:
    """Ranks of a session.

    A process of a system profile is a rank: numbered by worker_gid where each process has one of its own, else in order of
    instance and process id. A device profile belongs to the process that DeviceProfileList names for it, else to the rank
    in its own name ('rank_3'), else, where there is one rank only, to that. Device profiles without any of these are
    devices of one rank.
    """
    plans: list[RankPlan] = []
    for tables in profiles:
        if tables.has("SystemProfileEvents"):
            plans += _processes(tables)
    plans = _number(plans)
    by_process = {(plan.instance, plan.process): plan for plan in plans}
    listed = _device_list(profiles)
    by_rank = {plan.rank: plan for plan in plans}
    for tables in profiles:
        if not tables.profile.has_device:
            continue
        name = tables.profile.name
        entry = listed.get(name)
        plan = by_process.get((entry[0], entry[1])) if entry else None
        if plan is None and entry:
            plan = next((p for p in plans if p.process == entry[1]), None)
        if plan is None and (match := _RANK_IN_NAME.search(tables.profile.path)):
            rank = int(match.group(1))
            plan = by_rank.setdefault(rank, RankPlan(rank, how="name"))
        if plan is None:
            plan = by_rank[min(by_rank)] if by_rank else by_rank.setdefault(0, RankPlan(0))
        core = entry[2] if entry else _core(tables)
        plan.devices.append(DevicePlan(tables, core if core is not None else len(plan.devices)))
    if not by_rank:
        by_rank[0] = RankPlan(0)
    for tables in profiles:
        # A system profile with time series but no events still belongs somewhere: to the first rank.
        if not tables.has("SystemProfileEvents") and not tables.profile.has_device:
            first = by_rank[min(by_rank)]
            if first.system is None:
                first.system = tables
    ordered = [by_rank[rank] for rank in sorted(by_rank)]
    for plan in ordered:
        users = [(each.instance, each.process) for each in ordered if each.system is plan.system]
        if plan.system is not None and len(users) > 1:
            plan.sharers = users
    return ordered


def _processes(tables: ProfileTables) -> list[RankPlan]:
    rows = tables.connection.execute(
        """
        SELECT instance_id, process_id, min(worker_gid), max(worker_gid) FROM SystemProfileEvents
        GROUP BY ALL ORDER BY ALL
        """
    ).fetchall()
    return [
        RankPlan(low if low is not None and low == high else -1, tables, instance, process)
        for instance, process, low, high in rows
    ]


def _number(plans: list[RankPlan]) -> list[RankPlan]:
    wanted = [plan.rank for plan in plans]
    if plans and (-1 in wanted or len(set(wanted)) < len(wanted)):
        for number, plan in enumerate(plans):
            plan.rank, plan.how = number, "order"
    else:
        for plan in plans:
            plan.how = "worker_gid"
    return plans


def _device_list(profiles: list[ProfileTables]) -> dict[str, tuple[str | None, int | None, int | None]]:
    found: dict[str, tuple[str | None, int | None, int | None]] = {}
    for tables in profiles:
        if tables.has("DeviceProfileList"):
            rows = tables.connection.execute(
                "SELECT device_profile_name, instance_id, process_id, nc_id FROM DeviceProfileList"
            ).fetchall()
            for name, instance, process, core in rows:
                if name:
                    found[name.removesuffix("@latest")] = (instance, process, core)
    return found


def _core(tables: ProfileTables) -> int | None:
    if tables.has("Metadata", "neuroncore_idx"):
        core = tables.value("SELECT neuroncore_idx FROM Metadata LIMIT 1")
        if core is not None:
            return int(core)
    match = _CORE_IN_NAME.search(tables.profile.name)
    return int(match.group(1)) if match else None


def merged_plan(profiles: list[ProfileTables], rank: int) -> RankPlan:
    """One rank of everything: what one process of a capture left in its own directory."""
    plans = plan_ranks(profiles)
    first = plans[0]
    plan = RankPlan(rank, first.system, first.instance, first.process, how="capture")
    for each in plans:
        plan.devices += each.devices
    return plan
