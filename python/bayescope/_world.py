"""Worlds: what is drawn from them, and what they are asked."""

from __future__ import annotations

import json
import os
from typing import Any

import numpy as np

from . import _engine
from ._arguments import array, class_number, count
from ._figures import Figures, target_text
from ._results import Batch, Evidence, Scores, Typicality, Walk
from ._stream import Stream


def _images(x: Any) -> np.ndarray:
    x = array(x)
    if x.dtype.kind != "f":
        raise ValueError(f"images in world space are floats, not {x.dtype}")
    if x.ndim != 4:
        raise ValueError(f"images have the shape [n, C, H, W], not {list(x.shape)}")
    return np.ascontiguousarray(x, dtype=np.float32)


def _end(name: str, given: Any, shape: tuple[int, int, int]) -> int | np.ndarray:
    """An end of a walk: the number of a sample, or an image."""
    if hasattr(given, "__index__") and np.ndim(given) == 0:
        return count(name, given)
    x = array(given)
    if x.dtype.kind != "f" or x.shape != shape:
        raise ValueError(f"{name}: floats {list(shape)} or the number of a sample are needed, not {x.dtype} {list(x.shape)}")
    return np.ascontiguousarray(x, dtype=np.float32)


def _noise(noise: Any) -> str | None:
    if noise is None or isinstance(noise, str):
        return noise
    if isinstance(noise, os.PathLike):
        return os.fspath(noise)
    return json.dumps([[float(p) for p in row] for row in noise])


class World(Figures):
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
            found = json.loads(self._core.tau_of(target_text(target), _engine.EstimateLimits(repeatable=True)))
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
            one = classes if isinstance(classes, str) else self.classes[class_number("classes", classes, self.classes)]
        elif classes is not None:
            names = self.classes
            each = [class_number("classes", given, names) for given in classes]
        return Batch(*self._engine().sample(n, seed, one, each))

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

    def evidence(self, x: Any, for_: Any = None, against: Any = None) -> Evidence:
        """Where in images `x`, floats [n, C, H, W] in world space, the evidence for class `for_` and against class `against` lies:
        the maps of `bayescope evidence`, one an image.

        The classes are names or numbers; without both, those are compared in each image under which it is likeliest. Maps have the
        rows and columns of an image, or of its patches where the world's map works on patches. Likelihoods know of no prior:
        of the knobs τ alone counts, and at τ = 0 there is no evidence (`ValueError`).
        """
        if (for_ is None) != (against is None):
            raise ValueError("for_ and against: give both of them, or none")
        between = None
        if for_ is not None:
            names = self.classes
            between = class_number("for_", for_, names), class_number("against", against, names)
            if between[0] == between[1]:
                raise ValueError(f"for_ and against are both {names[between[0]]}: evidence is between two classes")
        return Evidence(*self._engine().evidence(_images(x), between))

    def walk(self, from_: Any, to: Any, *, steps: int = 32, seed: int = 0, classes: Any = None) -> Walk:
        """A walk to the boundary between two classes, as `bayescope walk`.

        It begins at `from_` and goes to `to`: each an image, floats [C, H, W] in world space, or the number of a sample of `seed`;
        `to` may also be the name of a class, as text. Samples are of the class `classes` (name or number), by the prior if not given.
        `steps` lie between the first point and the last, 1 to 10,000; of a walk along a gradient, at most.

        At τ = 0, under label noise, and towards the class that the image is decided as already, a `ValueError`.
        """
        names, shape = self.classes, self.shape
        start = _end("from_", from_, shape)
        towards = class_number("to", to, names) if isinstance(to, str) else None
        goal = _end("to", to, shape) if towards is None else None
        drawn = None if classes is None else class_number("classes", classes, names)
        x, middle, told = self._engine().walk(start, goal, towards, count("steps", steps), count("seed", seed), drawn)
        return Walk.of(x, middle, json.loads(told))

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
