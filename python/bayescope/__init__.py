"""Bayescope: worlds in which the truth is known.

A class-conditional normalizing flow, trained on real images and frozen, *is* a data distribution: every image has an exact
posterior p(y|x). This package draws from such worlds, asks them, and follows the training of a network against their Bayes limit.

>>> import bayescope
>>> world = bayescope.World("mnist", target="5%")        # τ at which no classifier errs less than 5 %
>>> x, y, posterior, logp, aleatoric = world.sample(64, seed=1)
>>> for x, y, *_ in world.stream(batch_size=128, seed=2): ...

Entropies and log-densities are in nats, everywhere. Errors of the engine are exceptions with the messages of the command line:
`ValueError` (an argument or a file that cannot be used), `OSError`, `MemoryError`, `ArithmeticError`, `RuntimeError` (a device).
"""

from ._engine import __version__
from ._evaluate import evaluate
from ._results import Batch, Evidence, Scores, Typicality, Walk
from ._run import Run
from ._stream import Stream
from ._world import World

__all__ = ["Batch", "Evidence", "Run", "Scores", "Stream", "Typicality", "Walk", "World", "__version__", "evaluate"]
