"""Worlds: what is drawn from them, and what they are asked."""

from __future__ import annotations

import json
import operator
import os
from typing import Any, NamedTuple

import numpy as np

from . import _engine
from ._arguments import array, count, count_or_none


class Batch(NamedTuple):
    """Images of a world with everything known about them.

    The posterior is that of the image before it was rounded to 32 bits where all classes share a map (`docs/theory.md`), and of
    `x` itself where they do not.
    """

    x: np.ndarray
    """Images in world space, float32 [n, C, H, W]."""
    y: np.ndarray
    """Drawn labels, int64 [n]: places in `World.classes`."""
    posterior: np.ndarray
    """Exact p(y|x), float64 [n, K]; rows sum to 1."""
    logp: np.ndarray
    """log p(x|y), float64 [n, K], nats."""
    aleatoric: np.ndarray
    """H(p(y|x)), float64 [n], nats."""


class Scores(NamedTuple):
    """What a world says of given images."""

    posterior: np.ndarray
    """Exact p(y|x), float64 [n, K]; rows sum to 1."""
    logp: np.ndarray
    """log p(x|y), float64 [n, K], nats."""
    aleatoric: np.ndarray
    """H(p(y|x)), float64 [n], nats."""
    log_px: np.ndarray
    """log p(x), float64 [n], nats."""


class Typicality(NamedTuple):
    """How given images stand to samples of a world: `docs/theory.md`, section 2."""

    p_value: np.ndarray
    """Two-sided p-value of log p(x) among those of the samples, float64 [n], in steps of 2 / (samples + 1)."""
    band: np.ndarray
    """In a word, text [n]: "typical" (p > 0.05), "unusual", "outside" (beyond every sample), or "far-outside" (by more than they
    range)."""
    less_likely: np.ndarray
    """Whether the image is on the less likely side of the samples, bool [n]."""
    log_px: np.ndarray
    """log p(x) of the images, float64 [n], nats: density of x in world space."""
    log_px_of_samples: tuple[float, float, float]
    """Least, middle and largest log p(x) of the samples, nats."""


def _images(x: Any) -> np.ndarray:
    x = array(x)
    if x.dtype.kind != "f":
        raise ValueError(f"images in world space are floats, not {x.dtype}")
    if x.ndim != 4:
        raise ValueError(f"images have the shape [n, C, H, W], not {list(x.shape)}")
    return np.ascontiguousarray(x, dtype=np.float32)


def _target(target: str | float) -> str:
    return target if isinstance(target, str) else repr(float(target))


def _noise(noise: Any) -> str | None:
    if noise is None or isinstance(noise, str):
        return noise
    if isinstance(noise, os.PathLike):
        return os.fspath(noise)
    return json.dumps([[float(p) for p in row] for row in noise])


class World:
    """A world: a frozen flow at its knobs τ, T and π.

    Parameters
    ----------
    name : str or path
        A bundled world (`"mnist"`), an oracle folder, or a checkpoint file.
    tau : float, optional
        Base temperature τ: 1 by default. Larger is harder.
    target : str or float, optional
        In place of `tau`: the Bayes error that the world is to have, `"5%"` or `0.05`. τ is that of
        `bayescope export --target`: no limit of time ends its search, so that it is found again.
    prior : sequence of K floats, optional
        Class prior π: weights ≥ 0, normalised. Uniform by default.
    smoothing : float
        Posterior smoothing T: p_T(y|x) ∝ (π_y p(x|y))^(1/T).
    label_noise : str, path or array [K, K], optional
        What labels are drawn by, whatever the image: `"symmetric:0.2"` (with probability 0.2 any other label), `"pair:0.2"` (that of the
        next class), `"by-class:0.1,0.2,…"`, a file of K rows of K numbers (`.csv`, `.json`), or a row-stochastic matrix C. All
        posteriors and figures are then those of the noisy label: p~(·|x) = Cᵀ p(·|x), exactly.
    device : str
        `"auto"`, `"wgpu"`, `"wgpu:N"`, `"cuda:N"`, `"cpu"` or `"ws://host:port/N"`: see `bayescope doctor`.
    precision : str
        `"f32"`, or `"f64"` on `device="cpu"`.

    The device is driven by a thread of the engine: one world may be used from several Python threads. Ctrl+C ends what is computed.
    A world does not survive `os.fork`.
    """

    def __init__(
        self,
        name: str | os.PathLike[str],
        *,
        tau: float | None = None,
        target: str | float | None = None,
        prior: Any = None,
        smoothing: float = 1.0,
        label_noise: Any = None,
        device: str = "auto",
        precision: str = "f32",
    ) -> None:
        if tau is not None and target is not None:
            raise ValueError("tau and target: give one of them")
        core = _engine.World(os.fspath(name), device, precision)
        self.precision = precision
        weights = None if prior is None else [float(weight) for weight in prior]
        self.name = os.fspath(name)
        noise = _noise(label_noise)
        self._core = core.at(1.0 if tau is None else float(tau), float(smoothing), weights, noise)
        self._process = os.getpid()
        if target is not None:
            # Without a limit of time: a run or a stream goes on in a later process only at the same τ.
            found = json.loads(self._core.tau_of(_target(target), None, 0, None, None, True))
            self._core = core.at(found["value"], float(smoothing), weights, noise)

    def __repr__(self) -> str:
        c, h, w = self.shape
        return f"World({self.name!r}, tau={self.tau!r}, smoothing={self.smoothing!r}): {len(self.classes)} classes, {c}×{h}×{w}, {self.device}"

    def _engine(self) -> Any:
        if os.getpid() != self._process:
            raise RuntimeError("this world was opened before the process was forked, and its engine did not follow: open it in this process")
        return self._core

    @property
    def classes(self) -> list[str]:
        """Names of the K classes, in the order of all columns."""
        return self._core.classes

    @property
    def shape(self) -> tuple[int, int, int]:
        """Channels, height and width of an image."""
        return self._core.shape

    @property
    def info(self) -> dict[str, Any]:
        """What is known about the oracle: architecture, training, SHA-256 of its weights (`oracle.json`)."""
        return json.loads(self._core.info)

    @property
    def device(self) -> str:
        """What computes, in words."""
        return self._core.device

    @property
    def tau_value(self) -> float:
        """Base temperature τ: the same as `tau`."""
        return self._core.tau

    @property
    def smoothing(self) -> float:
        """Posterior smoothing T."""
        return self._core.smoothing

    @property
    def prior(self) -> np.ndarray:
        """Class prior π, float64 [K]."""
        return np.array(self._core.prior)

    @property
    def label_noise(self) -> str | None:
        """What labels are drawn by, in words; `None` where they are the classes."""
        return self._core.label_noise

    def sample(self, n: int, seed: int = 0, classes: Any = None) -> Batch:
        """Draws images 0…n−1 of a seed: those of `bayescope sample --seed`, bit for bit on the same device.

        `classes` is the name or number of one class, or n of them, image by image; the prior decides by default.
        """
        n, seed, one, each = count("n", n), count("seed", seed), None, None
        if isinstance(classes, str) or hasattr(classes, "__index__") and np.ndim(classes) == 0:
            # By its name: the name of another class may be its number.
            one = classes if isinstance(classes, str) else self.classes[self._class_number(classes)]
        elif classes is not None:
            each = [self._class_number(c) for c in classes]
        return Batch(*self._engine().sample(n, seed, one, each))

    def _class_number(self, given: Any) -> int:
        """The number of a class by its name or number; names win."""
        names = self.classes
        if not isinstance(given, str):
            place = operator.index(given)
            if not 0 <= place < len(names):
                raise ValueError(f"classes={place}: this world's classes are 0 to {len(names) - 1}")
            return place
        if given in names:
            return names.index(given)
        if given.isascii() and given.isdigit() and int(given) < len(names):
            return int(given)
        raise ValueError(f"classes={given}: this world's classes are {', '.join(names)}")

    def scores(self, x: Any) -> Scores:
        """Everything the world says of images `x`, floats [n, C, H, W] in world space; used as float32."""
        return Scores(*self._engine().score(_images(x)))

    def posterior(self, x: Any) -> np.ndarray:
        """Exact p(y|x) of images `x`, floats [n, C, H, W]: float64 [n, K], as `bayescope posterior` computes it."""
        return self.scores(x).posterior

    def log_prob(self, x: Any, y: Any = None) -> np.ndarray:
        """log p(x|y) in nats, float64 [n], of images `x` [n, C, H, W] under classes `y` (integers [n]); without `y` log p(x)."""
        scores = self.scores(x)
        if y is None:
            return scores.log_px
        y = array(y)
        if y.shape != scores.log_px.shape or y.dtype.kind not in "iu":
            raise ValueError(f"y holds {len(scores.log_px)} integers, not {y.dtype} {list(y.shape)}")
        if y.size and (y.min() < 0 or y.max() >= len(self.classes)):
            raise ValueError(f"y holds classes 0 to {len(self.classes) - 1}, not {y.min()} to {y.max()}")
        return np.take_along_axis(scores.logp, y[:, None].astype(np.int64), axis=1)[:, 0]

    def typicality(self, x: Any, *, samples: int = 399) -> Typicality:
        """Whether images `x`, floats [n, C, H, W] in world space, are such as the world makes: their log p(x) among those of
        `samples` of its own (39 at least), as `bayescope posterior --typicality` computes it.

        The samples are the same at every call, and none that `sample` draws by default. A world of 32 bits keeps them in the
        program's cache; one of 64 bits draws them anew at every call.
        """
        samples, log_px = count("samples", samples), self.scores(x).log_px
        found = json.loads(self._engine().typicality(log_px, samples))
        images = found["images"]
        return Typicality(
            np.array([image["p_value"] for image in images], dtype=np.float64),
            np.array([image["band"] for image in images], dtype=str),
            np.array([image["less_likely"] for image in images], dtype=bool),
            log_px,
            tuple(found["log_px_of_samples"]),
        )

    def bayes_error(
        self,
        *,
        tolerance: float | None = None,
        seed: int = 0,
        samples: int | None = None,
        budget: float | None = None,
        information: bool = False,
    ) -> dict[str, Any]:
        """The Bayes error at these knobs, as `bayescope bayes-error --json`: `value`, `interval` (95 %), `method`, `why`, ….

        `tolerance` is the half width of the interval over the value. A world whose map depends on the class is sampled: for 56 s
        at most where neither `tolerance` nor `samples` (images) nor `budget` (seconds) is given. What is given ends the sampling,
        and no other time: with `tolerance` alone it may take long.

        With `information` also `slope` (dE/dlog τ) and `information`: `aleatoric_nats` (A = H(Y|X)), `mutual_information_bits`
        (I(X;Y)) and `normalised` (I(X;Y)/H(Y)), each with `value` and `interval`.
        """
        samples = count_or_none("samples", samples)
        return json.loads(self._engine().bayes_error(tolerance, count("seed", seed), samples, budget, bool(information)))

    def tau_of(
        self,
        target: str | float,
        *,
        tolerance: float | None = None,
        seed: int = 0,
        samples: int | None = None,
        budget: float | None = None,
    ) -> dict[str, Any]:
        """The τ of a Bayes error (`"5%"` or `0.05`), as `bayescope tau --json`: `value`, `interval` (95 %), `achieved`, ….

        Prior, smoothing and label noise are those of this world; its own τ does not count. A world that is sampled is sampled for
        56 s at most where no limit is given: the τ of `World(…, target=…)` has no limit of time, and may differ within the interval.
        """
        samples = count_or_none("samples", samples)
        return json.loads(self._engine().tau_of(_target(target), tolerance, count("seed", seed), samples, budget, False))

    @property
    def tau(self) -> Tau:
        """Base temperature τ. Called with a target it is `tau_of`: `world.tau("5%")["value"]`."""
        return Tau(self)

    def stream(self, batch_size: int, seed: int = 0, *, batch: int = 0) -> Stream:
        """Endless batches of a seed, from number `batch` on; drawn ahead by the engine's thread.

        Batch b holds the images b·batch_size … (b + 1)·batch_size − 1 of the seed, those that `sample` draws.
        """
        return Stream(self, batch_size, seed, batch)


class Tau(float):
    """τ as a number, which is called for another world's."""

    _world: World

    def __new__(cls, world: World) -> Tau:
        tau = super().__new__(cls, world.tau_value)
        tau._world = world
        return tau

    def __call__(self, target: str | float, **limits: Any) -> dict[str, Any]:
        """`World.tau_of`."""
        return self._world.tau_of(target, **limits)

    def __reduce__(self) -> tuple[Any, ...]:
        return float, (float(self),)


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
