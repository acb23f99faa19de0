"""Worlds and runs for PyTorch, and a callback for Lightning where it is installed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.utils.data import IterableDataset, get_worker_info

from ._run import Run
from ._stream import Stream as _Stream
from ._world import World

__all__ = ["Stream", "log"]


class Stream(IterableDataset):
    """An endless stream of a world: pairs x (float32 [B, C, H, W]) and y (int64 [B]), or with `posteriors=True` also p(y|x)
    (float32 [B, K]), the best soft labels there are.

    Tensors share the memory of the engine's arrays. Batches are made already: `DataLoader(stream, batch_size=None)`, or iterate the
    stream itself. The engine draws ahead on a thread of its own: worker processes would only stand in its way, and are refused.
    `state_dict` and `load_state_dict` are those of `bayescope.Stream`.
    """

    def __init__(self, world: World, batch_size: int, seed: int = 0, *, batch: int = 0, posteriors: bool = False) -> None:
        super().__init__()
        self.posteriors = posteriors
        self._stream = _Stream(world, batch_size, seed, batch)

    def __iter__(self) -> Iterator[tuple[torch.Tensor, ...]]:
        if get_worker_info() is not None:
            raise RuntimeError("the engine draws ahead on a thread of its own: use DataLoader(…, num_workers=0)")
        for drawn in self._stream:
            pair = (torch.from_numpy(drawn.x), torch.from_numpy(drawn.y))
            yield (*pair, torch.from_numpy(drawn.posterior).float()) if self.posteriors else pair

    @property
    def position(self) -> int:
        """Number of the batch that comes next, from 0."""
        return self._stream.position

    def state_dict(self) -> dict[str, Any]:
        """`bayescope.Stream.state_dict`."""
        return self._stream.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """`bayescope.Stream.load_state_dict`."""
        self._stream.load_state_dict(state)


def log(
    run: Run,
    step: int,
    network: Callable[[torch.Tensor], torch.Tensor],
    *,
    device: Any = None,
    batch_size: int = 500,
    **facts: Any,
) -> None:
    """Logs the logits of a network on the run's test images, in evaluation mode and without gradients.

    `device` is where the images go: that of the network's first parameter by default. `facts` are those of `Run.log`, which
    refuses NaN: a network that diverged raises a `ValueError`.
    """
    is_module = isinstance(network, torch.nn.Module)
    if device is None and is_module:
        device = next((parameter.device for parameter in network.parameters()), None)
    # Of every module its own: a frozen part stays as it was.
    modes = [(module, module.training) for module in network.modules()] if is_module else []
    if is_module:
        network.eval()
    try:
        with torch.no_grad():
            # A copy: the run's own array may not be written.
            pieces = torch.tensor(run.test_images).split(batch_size)
            logits = [network(piece.to(device) if device is not None else piece).float().cpu() for piece in pieces]
    finally:
        for module, training in modes:
            module.training = training
    run.log(step, torch.cat(logits), **facts)


try:
    from lightning.pytorch.callbacks import Callback as _Callback
except ImportError:
    try:
        from pytorch_lightning.callbacks import Callback as _Callback
    except ImportError:
        _Callback = None

if _Callback is not None:
    __all__.append("LightningCallback")

    class LightningCallback(_Callback):
        """Logs to a run every `every` steps, and at the end."""

        def __init__(self, run: Run, every: int = 100) -> None:
            super().__init__()
            self.run, self.every = run, every
            self._logged = -1

        def _log(self, trainer: Any, module: Any, part: float, **facts: Any) -> None:
            if trainer.is_global_zero and trainer.global_step != self._logged:
                self._logged = trainer.global_step
                log(self.run, trainer.global_step, module, epoch=trainer.current_epoch + part, **facts)

        def on_train_batch_end(self, trainer: Any, module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
            """Logs, every so many steps."""
            if trainer.global_step % self.every == 0:
                loss = outputs.get("loss") if isinstance(outputs, dict) else outputs
                # Lightning has divided it where it adds up the gradients of several batches.
                share = trainer.accumulate_grad_batches if module.automatic_optimization else 1
                # Of an endless stream no part of an epoch is ever done.
                part = (batch_idx + 1) / trainer.num_training_batches
                self._log(trainer, module, part, train_loss=None if loss is None else share * float(loss))

        def on_train_end(self, trainer: Any, module: Any) -> None:
            """Logs the last step."""
            self._log(trainer, module, 0.0)
            if trainer.is_global_zero:
                self.run.finish()
