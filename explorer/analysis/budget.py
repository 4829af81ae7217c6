"""Budgets for `check`: what a run must keep, alone and against a baseline."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from explorer.model.errors import InputError, UsageError

if TYPE_CHECKING:
    from explorer.analysis.run import Run

_UNITS = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "kib": 2**10, "mib": 2**20, "gib": 2**30}


@dataclass(frozen=True, slots=True)
class Budget:
    """What to hold a run to; unset fields are not checked."""

    max_regression: float | None = field(
        default=None, metadata={"doc": "Largest growth of the median step against the baseline, 0.05 is 5 %"}
    )
    max_step_ms: float | None = field(default=None, metadata={"doc": "Longest median step, ms"})
    max_memory: int | None = field(
        default=None, metadata={"doc": "Highest peak of allocated device memory, bytes or a text like '2 GB'"}
    )
    forbidden: tuple[str, ...] = field(
        default=(), metadata={"doc": "Rules that must have no finding of medium or high severity"}
    )
    max_saving_share: float | None = field(
        default=None, metadata={"doc": "Largest saving that any finding may promise, as a share of the step"}
    )
    min_compute_share: float | None = field(
        default=None, metadata={"doc": "Smallest share of the step in which the device computes"}
    )
    min_mfu: float | None = field(
        default=None, metadata={"doc": "Smallest model FLOPs utilisation of the step"}
    )

    @classmethod
    def from_mapping(cls, values: dict[str, Any], where: str) -> Budget:
        """From a TOML table. Raises InputError for an unknown key or a value of the wrong kind."""
        known = {entry.name for entry in fields(cls)}
        named = {key.replace("-", "_"): value for key, value in values.items()}
        if unknown := sorted(set(named) - known):
            raise InputError(f"{where}: unknown rule {unknown[0]!r}.", f"Rules: {', '.join(sorted(known))}.")
        try:
            if "max_memory" in named:
                named["max_memory"] = size_bytes(named["max_memory"])
            if "forbidden" in named:
                named["forbidden"] = tuple(str(rule) for rule in named["forbidden"])
            for key, value in named.items():
                if key not in ("max_memory", "forbidden"):
                    named[key] = float(value)
        except (TypeError, ValueError) as error:
            raise InputError(f"{where}: {error}.") from error
        return cls(**named)


def size_bytes(value: Any) -> int:
    """Bytes of a number or of a text like '2 GB' or '512MiB'. Raises ValueError."""
    if isinstance(value, int | float):
        return int(value)
    match = re.fullmatch(r"\s*([\d.]+)\s*([kmg]?i?b?)\s*", str(value).lower())
    if not match or match[2] not in _UNITS:
        raise ValueError(f"{value!r} is not a size")
    return int(float(match[1]) * _UNITS[match[2]])


def load_budget(path: str | None) -> Budget:
    """From `[tool.neuron-explorer.check]` of a pyproject.toml, or the top level of another TOML file.

    Without a path: ./pyproject.toml where it has that table, else an empty budget. Raises InputError when unreadable.
    """
    file = Path(path) if path else Path("pyproject.toml")
    if path is None and not file.exists():
        return Budget()
    try:
        document = tomllib.loads(file.read_text())
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InputError(f"{file} cannot be read: {error}.") from error
    table = document.get("tool", {}).get("neuron-explorer", {}).get("check")
    if table is None:
        table = document if path is not None and file.name != "pyproject.toml" else {}
    return Budget.from_mapping(table, str(file))


@dataclass(frozen=True, slots=True)
class Outcome:
    """One rule checked. `passed` None: it could not be checked, and why."""

    rule: str
    passed: bool | None
    message: str


def check(run: Run, budget: Budget, baseline: Run | None = None) -> list[Outcome]:
    """Hold a run to its budget. Raises UsageError when there is nothing to check."""
    outcomes: list[Outcome] = []
    if budget.max_regression is not None:
        outcomes.append(_regression(run, baseline, budget.max_regression))
    findings = (
        run.bottlenecks()
        if budget.forbidden or budget.max_saving_share is not None or budget.max_step_ms is not None
        else None
    )
    if budget.max_step_ms is not None and findings is not None:
        step_ms = findings.step_ns / 1e6
        outcomes.append(
            Outcome(
                "max_step_ms",
                step_ms <= budget.max_step_ms,
                f"median step {step_ms:.3f} ms, allowed {budget.max_step_ms:g} ms",
            )
        )
    if findings is not None and budget.forbidden:
        outcomes += [_forbidden(rule, findings) for rule in budget.forbidden]
    if findings is not None and budget.max_saving_share is not None:
        worst = max(findings, key=lambda finding: finding.saving_share, default=None)
        share = worst.saving_share if worst else 0.0
        text = f"largest saving {share:.1%}" + (f" ({worst.title})" if worst else "")
        outcomes.append(
            Outcome(
                "max_saving_share",
                share <= budget.max_saving_share,
                f"{text}, allowed {budget.max_saving_share:.1%}",
            )
        )
    if budget.max_memory is not None:
        outcomes.append(_memory(run, budget.max_memory))
    if budget.min_compute_share is not None:
        share = min((row["compute_share"] or 0.0 for row in run.summary()), default=0.0)
        outcomes.append(
            Outcome(
                "min_compute_share",
                share >= budget.min_compute_share,
                f"compute share {share:.1%}, wanted {budget.min_compute_share:.1%}",
            )
        )
    if budget.min_mfu is not None:
        outcomes.append(_mfu(run, budget.min_mfu))
    if not outcomes:
        raise UsageError(
            "There is nothing to check.",
            "Give rules in [tool.neuron-explorer.check], --rules FILE, or options such as --max-regression 5%.",
        )
    return outcomes


def _regression(run: Run, baseline: Run | None, allowed: float) -> Outcome:
    if baseline is None:
        return Outcome("max_regression", None, "no baseline was given (--baseline RUN)")
    comparison = baseline.compare(run)
    verdict = comparison.verdict
    if not comparison.comparable:
        reasons = "; ".join(
            f"{d.what}: {d.before} -> {d.after}" for d in comparison.differences if d.weight == "blocks"
        )
        return Outcome("max_regression", None, f"the runs are not comparable ({reasons})")
    if verdict.low is None:
        return Outcome("max_regression", None, verdict.reason)
    text = f"step {verdict.change_text} ({verdict.basis_text}), allowed {allowed:+.1%}"
    # Only a growth that the noise cannot explain fails: the whole interval must lie above the limit.
    return Outcome("max_regression", verdict.low <= allowed, text)


def _forbidden(rule: str, findings: Any) -> Outcome:
    hits = [f for f in findings if f.rule == rule and f.severity != "low"]
    if hits:
        return Outcome(f"forbidden {rule}", False, hits[0].title)
    skipped = next((item.reason for item in findings.not_checked if item.rule == rule), None)
    return Outcome(f"forbidden {rule}", True, f"no finding{f' (not checked: {skipped})' if skipped else ''}")


def _memory(run: Run, allowed: int) -> Outcome:
    peaks = [row["peak_bytes"] for row in run.memory() if row["peak_bytes"] is not None]
    if not peaks:
        return Outcome("max_memory", None, "the run holds no memory events (record with profile_memory)")
    return Outcome("max_memory", max(peaks) <= allowed, f"peak {max(peaks):,} bytes, allowed {allowed:,}")


def _mfu(run: Run, wanted: float) -> Outcome:
    from explorer.model.errors import ExplorerError

    try:
        rows = run.view("mfu").rows()
    except ExplorerError as error:
        return Outcome("min_mfu", None, error.message)
    values = [row["mfu"] for row in rows if row.get("mfu") is not None]
    if not values:
        return Outcome("min_mfu", None, "the run holds no shapes or no device peak to compute MFU from")
    return Outcome("min_mfu", min(values) >= wanted, f"MFU {min(values):.1%}, wanted {wanted:.1%}")
