"""Endless batches of a world."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._arguments import count
from ._results import Batch

if TYPE_CHECKING:
    from ._world import World


class Stream:
    """Endless, reproducible batches of a world: an iterator of `Batch`.

    `position` is the number of the batch that comes next. Keep `state_dict()` with the network's checkpoint, and give it to
    `load_state_dict` of a new stream: it goes on with the same bits.
    """

    def __init__(self, world: World, batch_size: int, seed: int = 0, batch: int = 0) -> None:
        self.world, self.batch_size, self.seed = world, count("batch_size", batch_size), count("seed", seed)
        self._core = world._engine().stream(self.batch_size, self.seed, count("batch", batch))

    def __iter__(self) -> Stream:
        return self

    def __next__(self) -> Batch:
        self.world._engine()
        return Batch(*next(self._core))

    @property
    def position(self) -> int:
        """Number of the batch that comes next, from 0."""
        return self._core.position

    @position.setter
    def position(self, batch: int) -> None:
        self._core.position = count("position", batch)

    def _identity(self) -> dict[str, Any]:
        world = self.world
        return {
            "batch_size": self.batch_size,
            "seed": self.seed,
            "weights_sha256": world.info["weights_sha256"],
            # Without a description the weights do not say which world they are.
            "assumed_pixels": world.info["pixels"] if world.info.get("inferred") else None,
            "precision": world.precision,
            "tau": world.tau_value,
            "smoothing": world.smoothing,
            "prior": world.prior.tolist(),
            "label_noise": world.label_noise,
        }

    def state_dict(self) -> dict[str, Any]:
        """The position, and what the stream is: numbers, text and lists alone."""
        return {**self._identity(), "position": self.position}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Goes on where another stream of the same world, seed and batch size was; refuses that of another."""
        differs = [name for name, value in self._identity().items() if state.get(name) != value]
        if differs:
            raise ValueError(f"the state is that of another stream: it differs in {', '.join(differs)}")
        if "position" not in state:
            raise ValueError("the state has no position: state_dict() of a stream keeps it")
        self.position = state["position"]
