"""Key figures and findings in MLflow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from explorer.report.loggers.key_values import findings_text, key_values

if TYPE_CHECKING:
    from explorer.analysis.run import Run


def log_to_mlflow(run: Run, client: Any, step: int = 0) -> None:
    """Log metrics, and the findings as the artefact findings.md.

    Args:
        run: an open run.
        client: the `mlflow` module (with a run active), or anything with its log_metrics and log_text.
        step: step to log under.
    """
    client.log_metrics({name.replace("/", "."): value for name, value in key_values(run).items()}, step=step)
    client.log_text(findings_text(run), "findings.md")
