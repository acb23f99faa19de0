"""Figures of a world: Bayes errors, class hardness, and how its images compare with real ones."""

from __future__ import annotations

import json
import os
from typing import Any

from ._arguments import count, count_or_none, floats, number_or_none
from ._engine import EstimateLimits
from ._results import columns, matrix


def target_text(target: str | float) -> str:
    """A Bayes error, `"5%"` or `0.05`, as the engine reads it."""
    return target if isinstance(target, str) else repr(float(target))


def _limits(tolerance: float | None, seed: int, samples: int | None, budget: float | None) -> EstimateLimits:
    """How far an estimate goes, as the engine takes it."""
    return EstimateLimits(tolerance, count("seed", seed), count_or_none("samples", samples), budget)


class Figures:
    """What a world is asked as a whole: a part of `World`."""

    def _engine(self) -> Any:
        raise NotImplementedError

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
        limits = _limits(tolerance, seed, samples, budget)
        return json.loads(self._engine().bayes_error(limits, bool(information)))

    def hardness(
        self,
        *,
        tolerance: float | None = None,
        seed: int = 0,
        samples: int | None = None,
        budget: float | None = None,
    ) -> dict[str, Any]:
        """How hard the K classes are to tell apart at these knobs, as `bayescope hardness --json`.

        - `one_vs_rest`: the classes that occur, hardest first, each with its number `class` and `one_vs_rest`: the Bayes error of
          "this class or not", with `value` and `interval` (95 %). Half of the images are of the class.
        - `pairwise`, float64 [K, K]: the Bayes error of class i against class j alone, their priors in proportion; 0 on the
          diagonal, NaN where neither occurs. `pairwise_intervals`, float64 [K, K, 2], where they are not exact.
        - `over_tau`, `agreement`: the order of the classes at τ = 0.7, 1 and 1.5, and whether it is the same.

        The limits are those of `bayes_error`; a `budget` is shared by the four temperatures. At τ = 0, and with one class alone, a
        `ValueError`.
        """
        found = json.loads(self._engine().hardness(_limits(tolerance, seed, samples, budget)))
        for key in ("pairwise", "pairwise_intervals"):
            if key in found:
                found[key] = matrix(found[key])
        return found

    def curve(
        self,
        taus: Any,
        *,
        tolerance: float | None = None,
        seed: int = 0,
        samples: int | None = None,
        budget: float | None = None,
    ) -> dict[str, Any]:
        """The Bayes error at each of `taus`, rising numbers [n] above 0, as `bayescope bayes-error --curve --json`, in columns.

        - `tau`, float64 [n].
        - `bayes_error`, and `aleatoric_nats` (A = H(Y|X)), each with `value` [n] and `interval` [n, 2] (95 %).
        - `slope`: dE/dlog τ, in the same form. A world that is sampled has `slope_from_last` in its place: the rise of E since the τ
          before, over that of log τ, from draws that are common to both; NaN at the first τ, absent of a single one.
        - `method`: text [n], or one word of a world that is sampled, which has `samples` (draws at each τ, [n]) and `ended` too.

        Prior, smoothing and label noise are those of this world; its own τ does not count. The limits are those of `bayes_error`,
        for the whole curve: `samples` at each τ. `taus` that do not rise, or with 0 among them, are a `ValueError`.
        """
        found = json.loads(self._engine().curve(floats("taus", taus), _limits(tolerance, seed, samples, budget)))
        return {**columns(found.pop("curve")), **found}

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
        return json.loads(self._engine().tau_of(target_text(target), _limits(tolerance, seed, samples, budget)))

    def validate(
        self,
        data: str | os.PathLike[str],
        *,
        images: int = 0,
        features: str | os.PathLike[str] | None = None,
        feature_epochs: int = 5,
        two_sample_images: int = 2000,
        two_sample_epochs: int = 10,
        fid_stats: str | os.PathLike[str] | None = None,
        limit: int | None = None,
        threshold: float | None = None,
        seed: int = 0,
        report: str | os.PathLike[str] | None = None,
    ) -> dict[str, Any]:
        """This world beside the real images it learnt, as `bayescope oracle validate --json`: `docs/validation.md` says how to read it.

        Parameters
        ----------
        data : path
            Real images: of a folder with splits the test part is held out.
        images : int
            Images to draw and compare with the real ones: FID, coverage, copies and a two-sample test. With 0 only the likelihood
            of held-out images (nats), round trips and stability.
        features : path, optional
            Weights of the feature net; a ResNet-18 is trained on the training images for `feature_epochs` if not given.
        two_sample_images, two_sample_epochs : int
            Images of each side of the two-sample test at most (0: none), and epochs of its network.
        fid_stats : path, optional
            Statistics that FID compares with, in place of the training images' own.
        limit : int, optional
            Training images at most, evenly spread.
        threshold : float, optional
            Distance of features below which an image is a copy; the first percentile of held-out images if not given.
        seed : int
            Seed of noise, images and resampling.
        report : path, optional
            Folder that gets the report. A validation that was stopped goes on there; one that holds another is refused.
        """
        asked = {
            "data": os.fspath(data),
            "images": count("images", images),
            "features": None if features is None else os.fspath(features),
            "feature_epochs": count("feature_epochs", feature_epochs),
            "two_sample_images": count("two_sample_images", two_sample_images),
            "two_sample_epochs": count("two_sample_epochs", two_sample_epochs),
            "fid_stats": None if fid_stats is None else os.fspath(fid_stats),
            "limit": count_or_none("limit", limit),
            "threshold": number_or_none("threshold", threshold),
            "seed": count("seed", seed),
        }
        place = None if report is None else os.fspath(report)
        return json.loads(self._engine().validate(json.dumps(asked, allow_nan=False), place))
