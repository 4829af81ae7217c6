"""Callbacks that record some steps of a Hugging Face Trainer or a Lightning Trainer.

Both frameworks are imported only when their callback is made.
"""

from __future__ import annotations

from typing import Any

from explorer.model.errors import MissingExtra


def huggingface_callback(directory: str, *, first_step: int = 2, steps: int = 20, **options: Any) -> Any:
    """A `transformers.TrainerCallback` that records `steps` optimizer steps from `first_step` on.

    Args:
        directory: where the run is written; after training `callback.directory` says where it lies.
        first_step: steps before it are warm-up.
        steps: how many to record.
        options: passed to `neuron_profile`.

    Raises:
        MissingExtra: transformers is not installed.
    """
    try:
        from transformers import TrainerCallback
    except ImportError as error:
        raise MissingExtra("transformers", "capture", "The Trainer callback") from error
    recorder = _StepWindow(directory, first_step, steps, options)

    class NeuronProfileCallback(TrainerCallback):  # type: ignore[misc,unused-ignore]
        @property
        def directory(self) -> str | None:
            return recorder.directory

        def on_step_begin(self, args: Any, state: Any, control: Any, **unused: Any) -> None:
            recorder.begin(state.global_step)

        def on_step_end(self, args: Any, state: Any, control: Any, **unused: Any) -> None:
            recorder.end(state.global_step)

        def on_train_end(self, args: Any, state: Any, control: Any, **unused: Any) -> None:
            recorder.finish()

    return NeuronProfileCallback()


def lightning_callback(directory: str, *, first_step: int = 2, steps: int = 20, **options: Any) -> Any:
    """A Lightning `Callback` that records `steps` batches from `first_step` on. Arguments as `huggingface_callback`."""
    try:
        from lightning.pytorch import Callback
    except ImportError:
        try:
            from pytorch_lightning import Callback  # type: ignore[no-redef,assignment,unused-ignore]
        except ImportError as error:
            raise MissingExtra("lightning", "capture", "The Lightning callback") from error
    recorder = _StepWindow(directory, first_step, steps, options)

    class NeuronProfileCallback(Callback):  # type: ignore[misc,unused-ignore]
        @property
        def directory(self) -> str | None:
            return recorder.directory

        def on_train_batch_start(self, trainer: Any, module: Any, batch: Any, batch_index: int) -> None:
            recorder.begin(trainer.global_step)

        def on_train_batch_end(
            self, trainer: Any, module: Any, outputs: Any, batch: Any, batch_index: int
        ) -> None:
            recorder.end(trainer.global_step)

        def on_train_end(self, trainer: Any, module: Any) -> None:
            recorder.finish()

        def on_exception(self, trainer: Any, module: Any, exception: BaseException) -> None:
            recorder.finish()

    return NeuronProfileCallback()


class _StepWindow:
    """Records a stretch of steps; what the frameworks' callbacks share."""

    def __init__(self, directory: str, first_step: int, steps: int, options: dict[str, Any]) -> None:
        from explorer.collectors.neuron_profile import neuron_profile

        self._recorder = neuron_profile(directory, **options)
        self._first, self._left = first_step, steps
        self._running = False

    @property
    def directory(self) -> str | None:
        """Where the run lies; None before the first recorded step."""
        return self._recorder.directory

    def begin(self, number: int) -> None:
        """A step begins; `number` steps are done."""
        if not self._running and self._left > 0 and number >= self._first:
            self._recorder.start()
            self._running = True

    def end(self, number: int) -> None:
        """A step ends."""
        if not self._running:
            return
        self._recorder.step()
        self._left -= 1
        if self._left <= 0:
            self.finish()

    def finish(self) -> None:
        """Stop recording where it still runs."""
        if self._running:
            self._running = False
            self._recorder.stop()
