"""What callers give, as the engine takes it."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

_MOST = 2**64 - 1


def count(name: str, value: Any) -> int:
    """A whole number from 0 that 64 bits hold; `name` is the argument that gives it."""
    number = operator.index(value)
    if not 0 <= number <= _MOST:
        raise ValueError(f"{name}={number}: a whole number from 0 to 2^64 − 1 is needed")
    return number


def count_or_none(name: str, value: Any) -> int | None:
    """`count` of what may be left out."""
    return None if value is None else count(name, value)


def array(values: Any) -> np.ndarray:
    """Numbers of any framework as an array; tensors of torch that need gradients or lie on a card are none yet."""
    for move in ("detach", "cpu"):
        values = getattr(values, move, lambda same=values: same)()
    if str(getattr(values, "dtype", "")) == "torch.bfloat16":
        values = values.float()
    return np.asarray(values)
