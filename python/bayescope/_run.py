"""External runs: a training by any program, followed against the Bayes limit."""

from __future__ import annotations

import json
import math
import os
import time
import warnings
from typing import Any

import numpy as np

from . import _engine
from ._arguments import count, count_or_none, number_or_none, numbers
from ._world import World

_KINDS = {"logits": "logits", "log_probs": "log-probabilities", "probs": "probabilities"}

# Records that are read one by one (STEPS of src/run/external/course.rs), and files of which none is read any more (FILES of record.rs).
_STEPS, _FILES = 20_000, 1_048_576


def _finite(name: str, value: Any) -> float | None:
    """A number for a record; none where it is not finite: JSON has no NaN."""
    value = number_or_none(name, value)
    return value if value is not None and math.isfinite(value) else None


def _single(called: str, values: Any) -> np.ndarray:
    """Predictions as float32, in which a record keeps them. What float32 cannot say is refused: −∞ would count as q = 0."""
    values = numbers(called, values)
    with np.errstate(over="ignore"):
        single = np.ascontiguousarray(values, dtype=np.float32)
    lost = np.isinf(single) & np.isfinite(values)
    if lost.any():
        raise ValueError(f"{called}: {values[lost][0]:.3g} is no float32, in which a record keeps its numbers")
    return single


class Run:
    """The run of a network that is trained here, which `bayescope watch FOLDER` and the window follow.

    Parameters
    ----------
    folder : path
        Made where it is not there; the same run in it goes on (see `last_step`), another one is refused.
    world : World
        The world that the network is trained on.
    name : str, optional
        Name of the run; that of the folder by default.
    test : int
        Number of test images: those of `bayescope export --seed`, apart from every stream and sample.
    seed : int
        Seed of the test images.
    predictions : str
        What is logged: `"logits"` (log-probabilities are logits too), `"log_probs"` or `"probs"`.
    train_images : int, optional
        Number N of different images that the network is trained on: runs of at least three N give a law over N. None for an endless stream.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        world: World,
        name: str | None = None,
        *,
        test: int = 2000,
        seed: int = 0,
        predictions: str = "logits",
        train_images: int | None = None,
    ) -> None:
        if predictions not in _KINDS:
            raise ValueError(f"predictions={predictions!r} is none of {', '.join(_KINDS)}")
        self.folder = os.fspath(folder)
        name = os.path.basename(os.path.abspath(self.folder)) if name is None else name
        train_images = count_or_none("train_images", train_images)
        world._engine().start_run(self.folder, name, count("test", test), count("seed", seed), predictions, train_images)
        self.name, self.predictions = name, predictions
        self._core = _engine.Run(self.folder)
        self._opened = time.monotonic()
        self._before: float | None = None
        self._test: np.ndarray | None = None
        self._records: int | None = None
        self._warned = False

    @property
    def test_images(self) -> np.ndarray:
        """The test images, float32 [N, C, H, W] in world space. Their labels and posteriors lie beside them in `test/`."""
        if self._test is None:
            self._test = np.load(os.path.join(self.folder, "test", "x.npy"))
            self._test.flags.writeable = False
        return self._test

    @property
    def last_step(self) -> int | None:
        """The last step that was logged, by an earlier process too; none at the beginning."""
        return self._core.last_step

    def log(
        self,
        step: int,
        logits: Any = None,
        *,
        log_probs: Any = None,
        probs: Any = None,
        epoch: float | None = None,
        images: int | None = None,
        seconds: float | None = None,
        train_loss: float | None = None,
    ) -> None:
        """Writes what the network says of `test_images` after `step` steps: one array [N, K], columns as `World.classes`.

        Arrays and tensors of any framework are taken, and kept as float32. `epoch` counts epochs, `images` the training images
        seen, `seconds` those since the training began, `train_loss` is in nats. By default the seconds since this run was opened
        are logged, added to those of the last record before the step with which it goes on. A step that is logged again replaces
        itself, and a run that was finished is no longer.

        What `bayescope summary` would refuse is a `ValueError` in its words, and nothing is written: NaN or +∞, a row of −∞
        alone, another shape, rows of probabilities that do not add up to 1, probabilities where the run holds logits. An `epoch`,
        `seconds` or `train_loss` that is NaN or infinite is left out of the record. A run with more records than are all read
        (20,000) says so once, as a warning.
        """
        given = {"logits": logits, "log_probs": log_probs, "probs": probs}
        given = {kind: values for kind, values in given.items() if values is not None}
        if len(given) != 1:
            raise ValueError("give one of logits, log_probs and probs")
        [(kind, values)] = given.items()
        # log q is an array whose softmax is q.
        if kind != self.predictions and (kind, self.predictions) != ("log_probs", "logits"):
            raise ValueError(f"this run holds {self.predictions}, not {kind}: Run(…, predictions={kind!r}) in another folder")
        step = count("step", step)
        if seconds is None:
            if self._before is None:
                # What earlier processes trained, up to the step at which this one goes on; nothing where it begins anew.
                self._before = self._core.seconds_before(step) or 0.0
            seconds = self._before + time.monotonic() - self._opened
        facts = (
            _finite("epoch", epoch),
            count_or_none("images", images),
            _finite("seconds", seconds),
            _finite("train_loss", train_loss),
        )
        self._core.log(step, _single(kind, values), *facts)
        self._warn_of_many()

    def _warn_of_many(self) -> None:
        """Warns once where not all records are read. Called after each record is written."""
        if self._warned:
            return
        # At most so many: a step that is logged again replaces itself. They are counted at the first one and before a warning.
        self._records = None if self._records is None else self._records + 1
        if self._records is None or self._records > _STEPS:
            self._records = sum(name.endswith(".pred") for name in os.listdir(os.path.join(self.folder, "predictions")))
        if self._records > _STEPS:
            self._warned = True
            warnings.warn(
                f"{self.folder} has {self._records:,} records: the window, `bayescope watch` and `bayescope summary` read every "
                f"second of them and the last, of more every fourth, and so on, and none where there are more than {_FILES:,} files",
                stacklevel=3,
            )

    def finish(self) -> None:
        """Says that nothing more comes: `bayescope watch` ends. Logging takes it back."""
        self._core.finish()

    def summary(self) -> dict[str, Any]:
        """The figures of every step, as `bayescope summary --json`: each computed from the logged predictions."""
        return json.loads(self._core.summary())

    def worst(self, step: int | None = None, n: int = 20) -> dict[str, Any]:
        """The `n` test images with the largest KL(p‖q) after `step` (the last that was logged if not given), largest first, as
        `bayescope external worst --json`: KL and entropy in nats, p and q of every class.
        """
        return json.loads(self._core.worst(count_or_none("step", step), count("n", n)))
