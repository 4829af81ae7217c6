"""Key figures and findings in TensorBoard."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from explorer.report.loggers.key_values import PREFIX, findings_text, key_values

if TYPE_CHECKING:
    from explorer.analysis.run import Run


def log_to_tensorboard(run: Run, writer: Any, step: int = 0) -> None:
    """Write scalars and the findings as text.

    Args:
        run: an open run.
        writer: a `torch.utils.tensorboard.SummaryWriter`, or anything with its add_scalar and add_text.
        step: global step to write them under.
    """
    for name, value in key_values(run).items():
        writer.add_scalar(name, value, step)
    writer.add_text(f"{PREFIX}/findings", findings_text(run), step)
