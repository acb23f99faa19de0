"""What a world answers, as arrays."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np


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


class Evidence(NamedTuple):
    """Where in given images the evidence for one class and against another lies: `docs/theory.md`, section 2."""

    cells: np.ndarray
    """Share of each place in log p(x|for_) − log p(x|against), float64 [n, rows, columns], nats: above 0 it speaks for `for_`."""
    sum: np.ndarray
    """Sum of the cells, float64 [n], nats."""
    total: np.ndarray
    """log p(x|for_) − log p(x|against), float64 [n], nats: computed without the cells."""
    for_: np.ndarray
    """The class that is spoken for, int64 [n]: places in `World.classes`."""
    against: np.ndarray
    """The class that is spoken against, int64 [n]."""


class Walk(NamedTuple):
    """A walk from an image to another or towards a class: m points, and the image at which two classes are equally probable."""

    x: np.ndarray
    """Images of the points in world space, float32 [m, C, H, W]."""
    position: np.ndarray
    """Share of a straight way, float64 [m]; of a walk along a gradient the way so far in units of x."""
    posterior: np.ndarray
    """Exact p(y|x), float64 [m, K]."""
    logp: np.ndarray
    """log p(x|y), float64 [m, K], nats; NaN where it is infinite."""
    aleatoric: np.ndarray
    """H(p(y|x)), float64 [m], nats."""
    log_px: np.ndarray
    """log p(x), float64 [m], nats."""
    way: str
    """What it follows: "latent", "class-latent", "pixels" or "gradient"."""
    start: int
    """The class that the first image is decided as."""
    target: int
    """The class that it goes to."""
    boundary: dict[str, Any]
    """The image at which both are equally probable, else the one where the target comes closest: by the names of
    `bayescope walk --json`, and `x`, float32 [C, H, W]."""
    rounding: float | None
    """Largest move of a posterior by the rounding of x to 32 bits; none where no image was before rounding."""

    @classmethod
    def of(cls, x: np.ndarray, middle: np.ndarray, told: dict[str, Any]) -> Walk:
        """From its images, and all else as JSON."""

        def points(name: str) -> np.ndarray:
            return np.array([point[name] for point in told["points"]], dtype=np.float64)

        return cls(
            x=x,
            position=points("position"),
            posterior=points("posterior"),
            logp=points("log_likelihood"),
            aleatoric=points("entropy_nats"),
            log_px=points("log_px"),
            way=told["way"],
            start=told["start"],
            target=told["target"],
            boundary={**told["boundary"], "x": middle},
            rounding=told["rounding"],
        )


def matrix(rows: list[list[Any]]) -> np.ndarray:
    """Numbers, or intervals, of pairs of classes: float64 [K, K] or [K, K, 2]; NaN where there is none."""
    intervals = any(isinstance(pair, list) for row in rows for pair in row)
    none = [np.nan, np.nan] if intervals else np.nan
    return np.array([[none if pair is None else pair for pair in row] for row in rows], dtype=np.float64)


def columns(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Rows with the same keys as one array a key. Of a number with its interval a dict of arrays; NaN where there is none."""
    found = {key: _column([row[key] for row in rows]) for key in rows[0]}
    return {key: column for key, column in found.items() if column is not None}


def _column(values: list[Any]) -> Any:
    known = next((value for value in values if value is not None), None)
    if known is None:
        return None
    if not isinstance(known, dict):
        return np.array(values)
    none = {part: np.full(np.shape(number), np.nan) for part, number in known.items()}
    return {part: np.array([(value or none)[part] for value in values], dtype=np.float64) for part in known}
