"""Judging predictions on an exported dataset."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from typing import Any

import numpy as np

from . import _engine
from ._arguments import count, numbers


def _model(called: str, model: Any) -> np.ndarray:
    if isinstance(model, (list, tuple)) and any(isinstance(part, (str, os.PathLike)) for part in model):
        raise ValueError(f"{called}: this is a list of paths; several models are a mapping of names to paths or arrays")
    return numbers(called, model)


def evaluate(
    predictions: Any,
    dataset: str | os.PathLike[str],
    *,
    split: str = "test",
    kind: str | None = None,
    name: str = "predictions",
    seed: int = 0,
    report: str | os.PathLike[str] | None = None,
    force: bool = False,
) -> Any:
    """What predictions are worth against the Bayes limit: the figures of `bayescope evaluate --json`.

    Parameters
    ----------
    predictions : array [N, K], path, or mapping of names to either
        Rows in the order of the images, columns in that of the classes; files as the command reads them. Tensors of any framework
        are arrays.
    dataset : path
        Folder of `bayescope export`.
    split : str
        `"test"` or `"train"`.
    kind : str, optional
        `"logits"`, `"probs"` or `"log_probs"`; detected by default.
    name : str
        What to call a model that is an array.
    seed : int
        Seed of the bootstrap intervals.
    report : path, optional
        Folder that gets figures and tables.
    force : bool
        Whether to write into that folder where it is not empty.

    Returns a dict of one model, a list of dicts of a mapping: losses in nats, shares between 0 and 1, intervals 95 %. Those of several
    models have `compared_with`: the differences to each other model, paired by image.
    """
    several = isinstance(predictions, Mapping)
    models = dict(predictions) if several else {name: predictions}
    with tempfile.TemporaryDirectory(prefix="bayescope-") as folder:
        paths, names, saved = [], [], {}
        for i, (called, model) in enumerate(models.items()):
            is_path = isinstance(model, (str, os.PathLike))
            path = os.fspath(model) if is_path else os.path.join(folder, f"{i}.npy")
            if not is_path:
                np.save(path, _model(called, model))
                saved[path] = called
            paths.append(path)
            # A file has a name of its own, unless it is given one.
            names.append(None if is_path and not several else called)
        place = None if report is None else os.fspath(report)
        try:
            found = _engine.evaluate(
                paths, os.fspath(dataset), split, kind, names, count("seed", seed), place, bool(force)
            )
        except Exception as error:
            told = str(error)
            # The file of an array is gone when this is read.
            for path, called in saved.items():
                told = told.replace(path, str(called))
            if told == str(error):
                raise
            raise type(error)(told) from None
    found = json.loads(found)
    return found if several else found[0]
