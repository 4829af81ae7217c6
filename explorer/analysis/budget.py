"""Budgets for `check`: what a run must keep, alone and against a baseline."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from explorer.analysis.contention import Contention, contention
from explorer.analysis.step_scope import find_scope
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
    """Hold a run to its budget. Raises UsageError when there is nothing to check.

    Where other programs took the processor while the run was recorded, what they can explain does not fail: a limit of time is
    failed only by what is beyond it even with a processor of its own; what was seen is said with each rule that speaks of time.
    """
    outcomes: list[Outcome] = []
    held_up = contention(run.engine, find_scope(run.engine))
    if budget.max_regression is not None:
        outcomes.append(_regression(run, baseline, budget.max_regression, held_up))
    findings = (
        run.bottlenecks()
        if budget.forbidden or budget.max_saving_share is not None or budget.max_step_ms is not None
        else None
    )
    if budget.max_step_ms is not None and findings is not None:
        step_ms = findings.step_ns / 1e6
        outcomes.append(
            _of_time(
                "max_step_ms",
                step_ms <= budget.max_step_ms,
                step_ms / held_up.stretch <= budget.max_step_ms,
                f"median step {step_ms:.3f} ms, allowed {budget.max_step_ms:g} ms",
                held_up,
            )
        )
    if findings is not None and budget.forbidden:
        outcomes += [_shares_said(_forbidden(rule, findings), held_up) for rule in budget.forbidden]
    if findings is not None and budget.max_saving_share is not None:
        worst = max(findings, key=lambda finding: finding.saving_share, default=None)
        share = worst.saving_share if worst else 0.0
        text = f"largest saving {share:.1%}" + (f" ({worst.title})" if worst else "")
        outcomes.append(
            _shares_said(
                Outcome(
                    "max_saving_share",
                    share <= budget.max_saving_share,
                    f"{text}, allowed {budget.max_saving_share:.1%}",
                ),
                held_up,
            )
        )
    if budget.max_memory is not None:
        outcomes.append(_memory(run, budget.max_memory))
    if budget.min_compute_share is not None:
        share = min((row["compute_share"] or 0.0 for row in run.summary()), default=0.0)
        outcomes.append(
            _shares_said(
                Outcome(
                    "min_compute_share",
                    share >= budget.min_compute_share,
                    f"compute share {share:.1%}, wanted {budget.min_compute_share:.1%}",
                ),
                held_up,
            )
        )
    if budget.min_mfu is not None:
        outcomes.append(_mfu(run, budget.min_mfu, held_up))
    if not outcomes:
        raise UsageError(
            "There is nothing to check.",
            "Give rules in [tool.neuron-explorer.check], --rules FILE, or options such as --max-regression 5%.",
        )
    return outcomes


def _seen(held_up: Contention) -> str:
    return f"other programs used the processor, this one had {held_up.core_percent:.0f} % of a core"


def _of_time(rule: str, passed: bool, alone: bool, message: str, held_up: Contention) -> Outcome:
    """The outcome of a limit of time. `alone`: whether it would hold, had the run taken its time without the others."""
    if passed or not held_up.sentence:
        return Outcome(rule, passed, message)
    if alone:
        why = f"which alone can make it {held_up.stretch:.1f} times as long: record again on a quiet machine"
        return Outcome(rule, None, f"{message}; {_seen(held_up)}, {why}")
    return Outcome(rule, False, f"{message}; {_seen(held_up)}, which does not explain all of it")


def _shares_said(outcome: Outcome, held_up: Contention) -> Outcome:
    """With what was seen: where others take the processor shares are less certain, which way is not known."""
    if not held_up.sentence or outcome.passed is not False:
        return outcome
    return replace(
        outcome,
        message=f"{outcome.message}; {_seen(held_up)}: shares are less certain, record again on a quiet machine",
    )


def _regression(run: Run, baseline: Run | None, allowed: float, held_up: Contention) -> Outcome:
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
    passed = verdict.low <= allowed
    before = contention(baseline.engine, find_scope(baseline.engine))
    if passed and before.sentence and not held_up.sentence:
        return Outcome(
            "max_regression",
            True,
            f"{text}; other programs used the processor while the baseline was recorded, it had {before.core_percent:.0f} % of a"
            " core: its steps were longer for that, and a growth can hide behind them",
        )
    # Both may have been held up: then only the difference explains anything.
    more = replace(held_up, stretch=max(1.0, held_up.stretch / before.stretch))
    return _of_time("max_regression", passed, (1 + verdict.low) / more.stretch - 1 <= allowed, text, more)


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


def _mfu(run: Run, wanted: float, held_up: Contention) -> Outcome:
    from explorer.model.errors import ExplorerError

    try:
        rows = run.view("mfu").rows()
    except ExplorerError as error:
        return Outcome("min_mfu", None, error.message)
    values = [row["mfu"] for row in rows if row.get("mfu") is not None]
    if not values:
        return Outcome("min_mfu", None, "the run holds no shapes or no device peak to compute MFU from")
    reached = min(values)
    text = f"MFU {reached:.1%}, wanted {wanted:.1%}"
    return _of_time("min_mfu", reached >= wanted, reached * held_up.stretch >= wanted, text, held_up)
