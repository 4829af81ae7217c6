"""Key figures and findings in Weights & Biases."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from explorer.report.loggers.key_values import PREFIX, findings_text, key_values

if TYPE_CHECKING:
    from explorer.analysis.run import Run


def log_to_wandb(run: Run, wandb_run: Any, step: int | None = None) -> None:
    """Log numbers, and put the findings into the summary.

    Args:
        run: an open run.
        wandb_run: what `wandb.init()` returned: `log` and `summary` are used.
        step: step to log under; None: the current one.
    """
    wandb_run.log(key_values(run), step=step)
    wandb_run.summary[f"{PREFIX}/findings"] = findings_text(run)
