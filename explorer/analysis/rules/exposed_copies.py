"""Host-device copies that nothing overlaps."""

from __future__ import annotations

from collections.abc import Sequence

from explorer.analysis.exposed import chosen_events, devices, exposed
from explorer.analysis.launch_advice import is_jax
from explorer.analysis.rule import Draft, Rule, Setting
from explorer.analysis.rule_context import RuleContext
from explorer.model.finding import Saving


def check(context: RuleContext) -> Sequence[Draft]:
    drafts = []
    for name, same in devices(context, "copy"):
        copies = chosen_events(context, same, "copy")
        alone = exposed(context, same, "copy")
        evidence, row = context.evidence(
            "{copies} copies per step ({moved_bytes}) leave the device without other work for {exposed_ns} per step.",
            f"""SELECT (SELECT count(*) FROM ({copies})) / {context.count} AS copies,
  (SELECT coalesce(sum(size_bytes), 0) FROM ({copies})) / {context.count} AS moved_bytes,
  (coalesce(sum(duration_ns), 0) / {context.count})::BIGINT AS exposed_ns FROM ({alone})""",
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
        drafts.append(
            Draft(
                title=f"Copies on {name} overlap nothing",
                line_times_ns={item["site_id"]: item["time_ns"] for item in lines},
                saving=Saving(low=exposed_ns // 3, expected=round(0.8 * exposed_ns), high=exposed_ns),
                evidence=[evidence],
                advice=_advice(
                    kinds[0]["name"], context.code(lines[0]["site_id"] if lines else None), is_jax(context)
                ),
                affected=f"SELECT event_id, start_ns, duration_ns FROM ({copies})",
                remaining_share=0.2,
                side="device",
                confidence="medium",
                key=name,
            )
        )
    return drafts


def _advice(kind: str, code: str, jax: bool) -> str:
    line = f" The line is `{code}`." if code else ""
    if jax:
        return f"Put the next batch on the device while this one computes (jax.device_put ahead of its use), keep results there (donate_argnums), and fetch them once every N steps.{line}"
    low = kind.lower()
    if "pageable" in low:
        return f"The largest copies are pageable: pin the host memory (DataLoader(pin_memory=True) or tensor.pin_memory()) and copy with .to(device, non_blocking=True).{line}"
    if "htod" in low or "host to device" in low or "hosttodevice" in low:
        return f"Copy the next batch while this one computes: pinned memory, .to(device, non_blocking=True) on a side stream, or create the tensor on the device.{line}"
    if "dtoh" in low or "device to host" in low or "devicetohost" in low:
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
