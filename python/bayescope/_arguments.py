"""What callers give, as the engine takes it."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

_MOST = 2**64 - 1


def count(name: str, value: Any) -> int:
    """A whole number from 0 that 64 bits hold; `name` is the argument that gives it."""
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name}={value!r}: a whole number is needed, not {type(value).__name__}") from None
    if not 0 <= number <= _MOST:
        raise ValueError(f"{name}={number}: a whole number from 0 to 2^64 − 1 is needed")
    return number


def count_or_none(name: str, value: Any) -> int | None:
    """`count` of what may be left out."""
    return None if value is None else count(name, value)


def number_or_none(name: str, value: Any) -> float | None:
    """A number, also an array or a tensor of one, or what may be left out. Text is none."""
    if value is None:
        return None
    try:
        if isinstance(value, (str, bytes)):
            raise TypeError
        return float(value)
    except (TypeError, ValueError, RuntimeError):
        raise TypeError(f"{name}={value!r}: one number is needed, not {type(value).__name__}") from None


def class_number(name: str, given: Any, classes: list[str]) -> int:
    """The number of a class by its name or number; names win. `name` is the argument that gives it."""
    if not isinstance(given, str):
        place = operator.index(given)
        if not 0 <= place < len(classes):
            raise ValueError(f"{name}={place}: this world's classes are 0 to {len(classes) - 1}")
        return place
    if given in classes:
        return classes.index(given)
    if given.isascii() and given.isdigit() and int(given) < len(classes):
        return int(given)
    raise ValueError(f"{name}={given}: this world's classes are {', '.join(classes)}")


def array(values: Any) -> np.ndarray:
    """Numbers of any framework as an array; tensors of torch that need gradients or lie on a card are none yet."""
    for move in ("detach", "cpu"):
        values = getattr(values, move, lambda same=values: same)()
    if str(getattr(values, "dtype", "")) == "torch.bfloat16":
        values = values.float()
    return np.asarray(values)


def floats(name: str, values: Any) -> list[float]:
    """Real numbers [n] of any framework; `name` is the argument that gives them."""
    values = array(values)
    if values.ndim != 1 or values.dtype.kind not in "iuf":
        raise ValueError(f"{name}: numbers [n] are needed, not {values.dtype} {list(values.shape)}")
    return values.astype(np.float64).tolist()


def numbers(called: str, values: Any) -> np.ndarray:
    """Predictions of any framework as an array; `called` says whose they are. What is no real number is refused."""
    values = array(values)
    if values.dtype.kind not in "biuf":
        raise ValueError(f"{called}: predictions are numbers [N, K], not {values.dtype} {list(values.shape)}")
    return values
