"""Long rows of values for a narrow picture."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt


class Envelope(NamedTuple):
    """The smallest and the largest of every ``step`` neighbours in rows of values, NaN where none is finite."""

    low: npt.NDArray[np.float64]
    high: npt.NDArray[np.float64]
    step: int


def envelope(values: npt.NDArray[np.float64], most: int) -> Envelope:
    """Shorten (..., L) to at most ``most`` columns without losing a peak; NaN counts as nothing."""
    length = values.shape[-1]
    step = max(1, -(-length // most))
    if step == 1:
        return Envelope(values, values, 1)
    rest = -length % step
    padded = np.concatenate([values, np.full((*values.shape[:-1], rest), np.nan)], axis=-1)
    parts = padded.reshape(*values.shape[:-1], -1, step)
    return Envelope(np.fmin.reduce(parts, axis=-1), np.fmax.reduce(parts, axis=-1), step)
