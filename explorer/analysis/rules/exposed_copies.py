"""Host-device copies that nothing overlaps."""

from __future__ import annotations

from collections.abc import Sequence

from explorer.analysis.rule import Draft, Rule, Setting
from explorer.analysis.rule_context import RuleContext
from explorer.model.finding import Saving

# Sweep over starts and ends: a stretch is exposed while at least one copy and no other work runs.
_EXPOSED = """SELECT at_ns AS start_ns, next_ns - at_ns AS duration_ns FROM (
  SELECT at_ns, lead(at_ns) OVER (ORDER BY at_ns) AS next_ns,
    sum(sum(copying)) OVER (ORDER BY at_ns) AS copies, sum(sum(working)) OVER (ORDER BY at_ns) AS work
  FROM (
    SELECT start_ns AS at_ns, is_copy AS copying, 1 - is_copy AS working FROM ({device})
    UNION ALL SELECT start_ns + duration_ns, -is_copy, is_copy - 1 FROM ({device})
  ) GROUP BY at_ns
) WHERE copies > 0 AND work = 0 AND next_ns > at_ns"""


def check(context: RuleContext) -> Sequence[Draft]:
    devices = context.rows(
        f"""SELECT t.device_type, t.device_index, sum(e.duration_ns) AS copy_ns
        FROM events e JOIN tracks t USING (rank, track_id)
        WHERE {context.where()} AND e.category = 'copy' AND t.kind <> 'thread'
        GROUP BY ALL ORDER BY copy_ns DESC, device_index"""
    )
    drafts = []
    for device in devices:
        index = device["device_index"]
        same = f"t.device_type IS NOT DISTINCT FROM '{device['device_type']}' AND t.device_index IS NOT DISTINCT FROM {'NULL' if index is None else index}"
        work = f"""SELECT e.start_ns, e.duration_ns, (e.category = 'copy')::INT AS is_copy
FROM events e JOIN tracks t ON t.rank = e.rank AND t.track_id = e.track_id
WHERE {context.where()} AND t.kind <> 'thread' AND {same} AND e.category IN ('kernel', 'copy', 'collective')"""
        copies = f"""SELECT e.event_id, e.site_id, e.name, e.duration_ns, e.size_bytes
FROM events e JOIN tracks t ON t.rank = e.rank AND t.track_id = e.track_id
WHERE {context.where()} AND t.kind <> 'thread' AND {same} AND e.category = 'copy'"""
        exposed = _EXPOSED.format(device=work)
        evidence, row = context.evidence(
            "{copies} copies per step ({moved_bytes}) leave the device without other work for {exposed_ns} per step.",
            f"""SELECT (SELECT count(*) FROM ({copies})) / {context.count} AS copies,
  (SELECT coalesce(sum(size_bytes), 0) FROM ({copies})) / {context.count} AS moved_bytes,
  (coalesce(sum(duration_ns), 0) / {context.count})::BIGINT AS exposed_ns FROM ({exposed})""",
            f"SELECT event_id FROM ({copies}) ORDER BY duration_ns DESC, event_id",
        )
        exposed_ns = row["exposed_ns"]
        if exposed_ns < context.setting(RULE, "exposed_share") * context.scope.mean_ns:
            continue
        kinds = context.rows(
            f"SELECT name, sum(duration_ns) AS time_ns FROM ({copies}) GROUP BY name ORDER BY time_ns DESC, name"
        )
        lines = context.rows(
            f"""SELECT site_id, (sum(duration_ns) / {context.count})::BIGINT AS time_ns FROM ({copies})
            WHERE site_id IS NOT NULL GROUP BY site_id ORDER BY time_ns DESC, site_id LIMIT 5"""
        )
        name = f"{device['device_type']}:{index}" if index is not None else str(device["device_type"])
        drafts.append(
            Draft(
                title=f"Copies on {name} overlap nothing",
                line_times_ns={item["site_id"]: item["time_ns"] for item in lines},
                saving=Saving(low=exposed_ns // 3, expected=round(0.8 * exposed_ns), high=exposed_ns),
                evidence=[evidence],
                advice=_advice(kinds[0]["name"], context.code(lines[0]["site_id"] if lines else None)),
                affected=exposed,
                side="device",
                confidence="medium",
                key=name,
            )
        )
    return drafts


def _advice(kind: str, code: str) -> str:
    line = f" The line is `{code}`." if code else ""
    low = kind.lower()
    if "pageable" in low:
        return f"The largest copies are pageable: pin the host memory (DataLoader(pin_memory=True) or tensor.pin_memory()) and copy with .to(device, non_blocking=True).{line}"
    if "htod" in low or "host to device" in low:
        return f"Copy the next batch while this one computes: pinned memory, .to(device, non_blocking=True) on a side stream, or create the tensor on the device.{line}"
    if "dtoh" in low or "device to host" in low:
        return f"Keep results on the device and fetch them once every N steps; copy into pinned memory with non_blocking=True and synchronise later.{line}"
    return f"Avoid the copies or put them on a side stream so that they overlap compute.{line}"


RULE = Rule(
    name="exposed_copies",
    title="Exposed copies",
    specificity=2,
    needs=("device",),
    check=check,
    settings=(
        Setting(
            "exposed_share",
            0.03,
            "Smallest part of the step with copies and no other device work",
            "TraceLens asks at 5 % of copies, exposed or not; only exposed ones count here",
        ),
    ),
)
